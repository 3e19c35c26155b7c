package io.kvasir.cli.commands;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Shutdown;
import io.kvasir.registry.HostPort;

import picocli.CommandLine.Option;

import java.io.IOException;
import java.util.function.IntSupplier;

/** Where a standalone service listens, and how its process runs. */
final class ServiceOptions {
    @Option(
            names = "--host",
            defaultValue = "0.0.0.0",
            description = "Address to listen on. Default: ${DEFAULT-VALUE}.")
    private String host;

    @Option(
            names = "--port",
            description = "Port to listen on; 0 = any free one. Default: ${DEFAULT-VALUE}.")
    private int port;

    /** Opens the port of a service. */
    @FunctionalInterface
    interface Start {
        /** Returns when the port is open. */
        void start() throws IOException;
    }

    /**
     * Options of one command.
     *
     * @param usualPort where it listens unless an option says otherwise
     */
    ServiceOptions(int usualPort) {
        port = usualPort;
    }

    /** Complains of an address that is none, before anything is started. */
    void check(CommonOptions common) {
        common.notBlank("--host", host);
        common.port(port);
    }

    String host() {
        return host;
    }

    int port() {
        return port;
    }

    /**
     * Starts a service, says where it listens, and runs until the process is ended.
     *
     * @param common of the command
     * @param name of the command
     * @param start opens the port
     * @param close ends the service, also in the middle of its start
     * @param listening the port once it is open
     * @return the exit code
     */
    int run(CommonOptions common, String name, Start start, Runnable close, IntSupplier listening)
            throws IOException, InterruptedException {
        final Shutdown shutdown = Shutdown.of(close);
        try {
            start.start();
        } catch (IOException e) {
            throw new CommandFailure(e.getMessage() + "; choose another --host or --port", e);
        }
        common.out().println(name + " listening on " + HostPort.of(host, listening.getAsInt()));
        common.out().flush();
        return shutdown.await();
    }
}
