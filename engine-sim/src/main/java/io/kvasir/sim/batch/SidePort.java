package io.kvasir.sim.batch;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.sim.config.SimConfig;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * The port of a prefill engine at which decode engines ask for held blocks and free them, see
 * {@link SideMessages}. One virtual thread per connection. Any thread.
 */
public final class SidePort implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(SidePort.class);
    private static final int BACKLOG = 1024;
    private static final long PERIOD_MILLIS = 100;

    private final SimConfig config;
    private final StepLoop loop;
    private final Set<Socket> connections = ConcurrentHashMap.newKeySet();
    private ServerSocket server;
    private volatile int port;

    /** Makes a port that is closed. */
    public SidePort(SimConfig config, StepLoop loop) {
        this.config = config;
        this.loop = loop;
        this.port = config.handoff().sidePort();
    }

    /** The port that is bound, or was at last. */
    public int port() {
        return port;
    }

    /**
     * Opens the port, also again after {@link #close}; nothing when it is open.
     *
     * @throws IOException when it cannot be bound
     */
    public synchronized void open() throws IOException {
        if (server != null) {
            return;
        }
        final ServerSocket opened = new ServerSocket();
        try {
            opened.setReuseAddress(true);
            opened.bind(new InetSocketAddress(InetAddress.getByName(config.host()), port), BACKLOG);
        } catch (IOException e) {
            opened.close();
            throw e;
        }
        port = opened.getLocalPort();
        server = opened;
        Thread.ofVirtual().name("sim-side-port").start(() -> accept(opened));
    }

    /** Closes the port and cuts its connections. Safe to call twice. */
    @Override
    public synchronized void close() {
        if (server == null) {
            return;
        }
        closeQuietly(server);
        server = null;
        connections.forEach(SidePort::closeQuietly);
    }

    private void accept(ServerSocket opened) {
        while (true) {
            final Socket connection;
            try {
                connection = opened.accept();
            } catch (IOException e) {
                return; // closed
            }
            connections.add(connection);
            if (opened.isClosed()) {
                closeQuietly(connection);
            }
            Thread.ofVirtual().name("sim-side-connection").start(() -> serve(connection));
        }
    }

    private void serve(Socket connection) {
        try (connection) {
            connection.setTcpNoDelay(true);
            final InputStream in = new BufferedInputStream(connection.getInputStream());
            final OutputStream out = connection.getOutputStream();
            for (JsonNode message = SideMessages.read(in);
                    message != null;
                    message = SideMessages.read(in)) {
                SideMessages.write(out, answer(message, connection, in));
            }
        } catch (IOException e) {
            LOG.debug("side port {}: {}", port, e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            connections.remove(connection);
        }
    }

    private ObjectNode answer(JsonNode message, Socket connection, InputStream in)
            throws IOException, InterruptedException {
        if (message.has("pull")) {
            return SideMessages.offer(offer(SideMessages.order(message), connection, in));
        }
        if (message.has("done")) {
            return freed(message.path("done").asText(), KvHold.End.PULLED);
        }
        if (message.has("free")) {
            return freed(message.path("free").asText(), KvHold.End.NOTIFIED);
        }
        throw new IOException("unknown message " + message);
    }

    private ObjectNode freed(String key, KvHold.End end) {
        return SideMessages.object().put("freed", loop.ask(() -> loop.free(key, end)));
    }

    private PullOffer offer(PullOrder order, Socket connection, InputStream in)
            throws IOException, InterruptedException {
        if (!order.model().equals(config.model()) || order.blockSize() != config.blockSize()) {
            return PullOffer.refused(
                    "the engines differ: model "
                            + order.model()
                            + " and "
                            + config.model()
                            + ", block size "
                            + order.blockSize()
                            + " and "
                            + config.blockSize());
        }
        final CompletableFuture<PullOffer> answer = new CompletableFuture<>();
        loop.offer(order, answer);
        try {
            while (true) {
                try {
                    return answer.get(PERIOD_MILLIS, TimeUnit.MILLISECONDS);
                } catch (TimeoutException e) {
                    requireOpen(connection, in);
                }
            }
        } catch (ExecutionException e) {
            throw new AssertionError("offers do not fail", e);
        } finally {
            if (answer.cancel(false)) {
                loop.withdraw(order);
            }
        }
    }

    /** A decode that waits for a room sends nothing; one that is not there any more is noticed. */
    private static void requireOpen(Socket connection, InputStream in) throws IOException {
        in.mark(1);
        connection.setSoTimeout(1);
        try {
            if (in.read() < 0) {
                throw new EOFException("the decode engine does not wait any more");
            }
            in.reset();
        } catch (SocketTimeoutException e) {
            // silent and open, as it shall be
        } finally {
            connection.setSoTimeout(0);
        }
    }

    private static void closeQuietly(AutoCloseable closeable) {
        try {
            closeable.close();
        } catch (Exception e) {
            LOG.debug("closing {}: {}", closeable, e.toString());
        }
    }
}
