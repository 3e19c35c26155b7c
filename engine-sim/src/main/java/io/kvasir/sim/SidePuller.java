package io.kvasir.sim;

import com.fasterxml.jackson.databind.JsonNode;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Carries a decode engine's orders to the side ports of prefill engines: a connection and a virtual
 * thread per pull. Called on the step loop, reports to it.
 */
final class SidePuller implements KvPull.Carrier, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(SidePuller.class);
    private static final int CONNECT_MILLIS = 5_000;

    /** The step loop, as far as pulls report to it. */
    interface Reports {
        void offered(SimRequest request, PullOffer offer);

        void undeliverable(SimRequest request, String why);

        void confirmed(SimRequest request, boolean freed);
    }

    private final Reports reports;
    private final ConcurrentHashMap<SimRequest, Errand> errands = new ConcurrentHashMap<>();

    SidePuller(Reports reports) {
        this.reports = reports;
    }

    /** The connection of one pull, and the moment at which its bytes are here. */
    private record Errand(Socket socket, CompletableFuture<Void> moved) {
        void cancel() {
            moved.cancel(false);
            try {
                socket.close();
            } catch (IOException e) {
                LOG.debug("closing the connection of a pull: {}", e.toString());
            }
        }
    }

    @Override
    public void begin(SimRequest request) {
        final Errand errand = new Errand(new Socket(), new CompletableFuture<>());
        errands.put(request, errand);
        Thread.ofVirtual().name("sim-pull").start(() -> run(request, errand));
    }

    @Override
    public void moved(SimRequest request) {
        final Errand errand = errands.get(request);
        if (errand != null) {
            errand.moved.complete(null);
        }
    }

    @Override
    public void cancel(SimRequest request) {
        final Errand errand = errands.remove(request);
        if (errand != null) {
            errand.cancel();
        }
    }

    @Override
    public void close() {
        errands.keySet().forEach(this::cancel);
    }

    private void run(SimRequest request, Errand errand) {
        final PullOrder order = request.pull.order;
        try (Socket socket = errand.socket) {
            socket.connect(
                    new InetSocketAddress(request.pull.host, request.pull.port), CONNECT_MILLIS);
            socket.setTcpNoDelay(true);
            final InputStream in = new BufferedInputStream(socket.getInputStream());
            SideMessages.write(socket.getOutputStream(), SideMessages.order(order));
            reports.offered(request, SideMessages.offer(answer(in)));
            errand.moved.join();
            SideMessages.write(
                    socket.getOutputStream(), SideMessages.object().put("done", order.key()));
            reports.confirmed(request, answer(in).path("freed").asBoolean());
        } catch (IOException | IllegalArgumentException e) {
            reports.undeliverable(request, e.toString());
        } catch (CancellationException e) {
            LOG.debug("pull of {} was given up", order.key());
        }
    }

    private static JsonNode answer(InputStream in) throws IOException {
        final JsonNode answer = SideMessages.read(in);
        if (answer == null) {
            throw new EOFException("the side port closed the connection");
        }
        return answer;
    }
}
