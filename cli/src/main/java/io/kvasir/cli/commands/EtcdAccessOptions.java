package io.kvasir.cli.commands;

import io.kvasir.gateway.config.EtcdAccess;
import io.kvasir.registry.etcd.EtcdOptions;

import picocli.CommandLine.Option;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** How a command authenticates itself to etcd, and etcd to the command. */
final class EtcdAccessOptions {
    private static final String PREFIX = "--etcd-";

    @Option(
            names = "--etcd-user",
            paramLabel = "NAME",
            description = "User of etcd; needs --etcd-password-file.")
    private String user;

    @Option(
            names = "--etcd-password-file",
            paramLabel = "FILE",
            description =
                    "File whose first line is the password of --etcd-user; read at each login.")
    private Path password;

    @Option(
            names = "--etcd-trust-store",
            paramLabel = "FILE",
            description =
                    "PEM file of the authorities that sign certificates of https:// members of"
                            + " etcd; read for each connection. Not set, those of the JVM.")
    private Path trustStore;

    /**
     * Access to members.
     *
     * @param members of etcd
     * @param ttl of leases
     * @throws IllegalArgumentException if a file cannot be read or a value cannot be; the message
     *     names it
     */
    EtcdOptions access(List<URI> members, Duration ttl) {
        return access(members).options(ttl);
    }

    /**
     * Checks addresses and user, and reads nothing.
     *
     * @throws IllegalArgumentException if one cannot be; the message names it
     */
    void check(List<URI> members) {
        access(members).check();
    }

    private EtcdAccess access(List<URI> members) {
        return new EtcdAccess(PREFIX, members, user, password, trustStore);
    }
}
