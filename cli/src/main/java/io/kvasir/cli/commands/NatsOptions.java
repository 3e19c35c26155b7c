package io.kvasir.cli.commands;

import io.kvasir.nats.KeyStores;
import io.kvasir.nats.NatsAccess;

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

    /**
     * Access to servers.
     *
     * @param urls of NATS, with commas between
     * @throws IOException if a file cannot be read; the message names it
     */
    NatsAccess access(String urls) throws IOException {
        final String password = System.getenv(KeyStores.PASSWORD);
        return NatsAccess.of(urls)
                .withCredentials(credentials)
                .withTls(
                        KeyStores.tlsOrNull(
                                trustStore, keyStore, password == null ? "" : password));
    }
}
