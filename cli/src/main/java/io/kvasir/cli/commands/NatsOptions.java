package io.kvasir.cli.commands;

import io.kvasir.gateway.config.NatsUrls;
import io.kvasir.nats.KeyStores;
import io.kvasir.nats.NatsAccess;
import io.kvasir.router.settings.Setting;

import org.slf4j.LoggerFactory;

import picocli.CommandLine.Option;

import java.io.IOException;
import java.nio.file.Path;

/** How a command authenticates itself to NATS, and NATS to the command. */
final class NatsOptions {
    @Option(
            names = "--credentials",
            paramLabel = "FILE",
            description = "User's JWT and key for NATS.")
    private Path credentials;

    @Option(
            names = "--trust-store",
            paramLabel = "FILE",
            description =
                    "Java key store with the certificates that sign NATS servers' ones; its"
                            + " password is in KVASIR_NATS_STORE_PASSWORD.")
    private Path trustStore;

    @Option(
            names = "--key-store",
            paramLabel = "FILE",
            description =
                    "Java key store with the own certificate for NATS; its password is in"
                            + " KVASIR_NATS_STORE_PASSWORD, too.")
    private Path keyStore;

    /** Complains of an address in {@code --nats} that is none of NATS. */
    void check(CommonOptions common, String urls) {
        common.checked(
                "--nats " + Setting.withoutPasswords(urls) + " ", () -> NatsUrls.parse(urls));
    }

    /**
     * Access to servers. Each connection goes by what the files have when it is opened; what cannot
     * be read then is logged, and what was read before stays.
     *
     * @param urls of NATS, with commas between
     * @throws IOException if a file cannot be read; the message names it
     */
    NatsAccess access(String urls) throws IOException {
        final String password = System.getenv(KeyStores.PASSWORD);
        return NatsAccess.of(urls)
                .withCredentials(credentials)
                .withTls(
                        KeyStores.followedOrNull(
                                trustStore,
                                keyStore,
                                password == null ? "" : password,
                                NatsOptions::stays));
    }

    /** The logger is made here: one of the class would be, for every command, before its level. */
    private static void stays(String problem) {
        LoggerFactory.getLogger(NatsOptions.class).warn("{}; what was read before stays", problem);
    }
}
