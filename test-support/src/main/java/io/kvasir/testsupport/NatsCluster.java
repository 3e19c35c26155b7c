package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Three real NATS servers in a cluster, which keep streams of JetStream together. */
public final class NatsCluster implements AutoCloseable {
    private static final int SERVERS = 3;

    private final List<NatsServer> servers = new ArrayList<>();

    /**
     * Starts the servers. They elect a leader by themselves, in some seconds.
     *
     * @param program from {@link NatsServer#program}
     * @param folder an empty one
     */
    public NatsCluster(Path program, Path folder) throws IOException, InterruptedException {
        this(program, folder, false);
    }

    /**
     * Starts the servers. They elect a leader by themselves, in some seconds.
     *
     * @param program from {@link NatsServer#program}
     * @param folder an empty one
     * @param advertises whether a client of one server learns of the others
     */
    public NatsCluster(Path program, Path folder, boolean advertises)
            throws IOException, InterruptedException {
        final int routes = FreePorts.run(SERVERS);
        for (int i = 0; i < SERVERS; i++) {
            final Path own = Files.createDirectories(folder.resolve("nats-" + i));
            final Path config = own.resolve("nats.conf");
            Files.writeString(config, config(i, routes, advertises));
            servers.add(NatsServer.in(program, own, config));
        }
        try {
            for (NatsServer server : servers) {
                server.start();
            }
        } catch (IOException | InterruptedException e) {
            close();
            throw e;
        }
    }

    /** Clients may reach the other servers by other addresses only. */
    private static String config(int server, int routes, boolean advertises) {
        return String.format(
                Locale.ROOT,
                """
                server_name: n%d
                cluster {
                  name: kvasir
                  listen: "127.0.0.1:%d"
                  no_advertise: %b
                  routes: [%s]
                }
                """,
                server,
                routes + server,
                !advertises,
                IntStream.range(routes, routes + SERVERS)
                        .mapToObj(port -> "\"nats://127.0.0.1:" + port + "\"")
                        .collect(Collectors.joining(", ")));
    }

    /** The servers, in a fixed order. */
    public List<NatsServer> servers() {
        return servers;
    }

    @Override
    public void close() {
        servers.forEach(NatsServer::close);
    }
}
