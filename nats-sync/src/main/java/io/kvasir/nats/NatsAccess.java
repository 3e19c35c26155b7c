package io.kvasir.nats;

import io.nats.client.AuthenticationException;
import io.nats.client.Connection;
import io.nats.client.Nats;
import io.nats.client.Options;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import javax.net.ssl.SSLContext;

/**
 * Where NATS is and how one is let in; the same for events, replica sync, registrations and
 * transfer records.
 *
 * @param servers addresses with commas between, such as {@code nats://nats:4222}; {@code tls://} in
 *     front of one wants TLS, {@code user:password@} in it names a user
 * @param credentials file of a user's JWT and seed, read at each connection; null for none
 * @param tls for servers with TLS; null for the JVM's own. With one, servers without TLS are
 *     refused. A server's certificate must be for its host, also with the JVM's own
 * @param timeout of connecting and of each request, at least 100 ms
 */
public record NatsAccess(String servers, Path credentials, SSLContext tls, Duration timeout) {
    private static final int FOR_EVER = -1;

    /** A server that hangs is noticed when two of them are unanswered at the third. */
    private static final Duration PING_INTERVAL = Duration.ofSeconds(5);

    private static final int UNANSWERED_PINGS = 2;
    private static final Pattern TLS_SCHEME = Pattern.compile("(^|,)\\s*(tls|wss)://");
    private static final Pattern HOST =
            Pattern.compile("^\\s*(?:[a-z]+://)?(?:\\[([^]]+)]|([^:/\\s]+))");
    private static final Pattern SERVERS = Pattern.compile(": \\[.*]$"); // as the client has them
    private static final Pattern USER = Pattern.compile("(^|,|//)[^,/@]*@");

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public NatsAccess {
        Objects.requireNonNull(servers, "servers");
        if (servers.isBlank()) {
            throw new IllegalArgumentException("no NATS server is named");
        }
        if (timeout.toMillis() < 100) {
            throw new IllegalArgumentException("timeout=" + timeout + ", at least 100 ms");
        }
        if (credentials != null && !Files.isReadable(credentials)) {
            throw new IllegalArgumentException(
                    "credentials=" + credentials + ": no file that can be read");
        }
    }

    /** Without credentials, requests of at most 2 s. */
    public static NatsAccess of(String servers) {
        return new NatsAccess(servers, null, null, Duration.ofSeconds(2));
    }

    /** The same with a file of credentials, null for none. */
    public NatsAccess withCredentials(Path file) {
        return new NatsAccess(servers, file, tls, timeout);
    }

    /** The same with TLS, null for the JVM's own. */
    public NatsAccess withTls(SSLContext context) {
        return new NatsAccess(servers, credentials, context, timeout);
    }

    /** The servers without users and passwords, for messages. */
    public String address() {
        return withoutUsers(servers);
    }

    /** What went wrong at the servers: after their address, where they are not named yet. */
    public String at(String why) {
        return why.startsWith(address()) ? why : address() + ": " + why;
    }

    static String withoutUsers(String text) {
        return USER.matcher(text).replaceAll("$1");
    }

    /**
     * The server that a connection has.
     *
     * @return without user and password; null while it has none
     */
    public static String addressOf(Connection connection) {
        final String url = connection.getConnectedUrl();
        return url == null ? null : withoutUsers(url);
    }

    /**
     * Connects once.
     *
     * @param options from {@link #options}
     * @throws IOException if that fails now, without the servers in its message
     */
    public static Connection connect(Options.Builder options)
            throws IOException, InterruptedException {
        final Options made = options.build();
        try {
            return Nats.connect(made);
        } catch (AuthenticationException e) {
            throw e; // names no server
        } catch (IOException e) {
            final String why =
                    made.getErrorListener() instanceof ServerErrors errors
                            ? errors.unconnected(made.getConnectionTimeout())
                            : "";
            final String said = SERVERS.matcher(String.valueOf(e.getMessage())).replaceFirst("");
            throw new IOException(withoutUsers(said + why), e.getCause());
        }
    }

    /**
     * Options of a connection that comes back by itself, without an end, also from a server that
     * hangs: after up to 15 s.
     *
     * @param name of the connection, as NATS shows it
     * @throws IllegalArgumentException if a server's address is none
     */
    public Options.Builder options(String name) {
        final Options.Builder options =
                Options.builder()
                        .servers(servers.split(",", -1))
                        .connectionName(name)
                        .connectionTimeout(timeout)
                        .maxReconnects(FOR_EVER)
                        .pingInterval(PING_INTERVAL)
                        .maxPingsOut(UNANSWERED_PINGS)
                        .reconnectDelayHandler(ConnectPause::afterRounds);
        if (credentials != null) {
            options.authHandler(Nats.credentials(credentials.toString()));
        }
        if (tls != null) {
            options.sslContext(NameCheckedTls.of(tls, hosts()));
        } else if (TLS_SCHEME.matcher(servers).find()) {
            options.sslContext(NameCheckedTls.ofJvm(hosts()));
        }
        return options;
    }

    /** The configured hosts, without anything else of their addresses. */
    List<String> hosts() {
        final List<String> hosts = new ArrayList<>();
        for (String server : servers.split(",", -1)) {
            final Matcher host = HOST.matcher(withoutUsers(server));
            if (host.find()) {
                hosts.add(host.group(host.group(1) == null ? 2 : 1));
            }
        }
        return hosts;
    }

    @Override
    public String toString() {
        return address(); // no secrets
    }
}
