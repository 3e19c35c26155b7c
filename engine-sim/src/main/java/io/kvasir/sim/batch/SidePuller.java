package io.kvasir.sim.batch;

import com.fasterxml.jackson.databind.JsonNode;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

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

        void spoiled(SimRequest request);
    }

    private final Reports reports;
    private final KvMemory memory;
    private final ConcurrentHashMap<SimRequest, Errand> errands = new ConcurrentHashMap<>();

    /**
     * Makes a carrier.
     *
     * @param memory bytes of the own blocks, or null
     */
    SidePuller(Reports reports, KvMemory memory) {
        this.reports = reports;
        this.memory = memory;
    }

    /** The connection of one pull, its bytes, and the moment at which they shall be here. */
    private static final class Errand {
        private final Socket socket = new Socket();
        private final CompletableFuture<Void> moved = new CompletableFuture<>();
        private KvMovement movement; // guarded by this, as whether the errand is given up

        synchronized KvMovement move(Supplier<KvMovement> begin) {
            if (moved.isCancelled()) {
                throw new CancellationException();
            }
            movement = begin.get();
            return movement;
        }

        synchronized void cancel() {
            moved.cancel(false);
            if (movement != null) {
                movement.stop();
            }
            try {
                socket.close();
            } catch (IOException e) {
                LOG.debug("closing the connection of a pull: {}", e.toString());
            }
        }
    }

    @Override
    public void begin(SimRequest request) {
        final Errand errand = new Errand();
        request.states(); // made here, read by the thread of the pull
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
            final PullOffer offer = SideMessages.offer(answer(in));
            final KvMovement movement =
                    memory == null || offer.stale() != null || offer.refused() != null
                            ? null
                            : errand.move(() -> move(request, offer));
            reports.offered(request, offer);
            boolean good = check(request, movement, true);
            errand.moved.join();
            good &= check(request, movement, false);
            SideMessages.write(
                    socket.getOutputStream(), SideMessages.object().put("done", order.key()));
            final boolean freed = answer(in).path("freed").asBoolean();
            if (good) {
                // bytes that were checked are right, whatever has become of their source
                reports.confirmed(request, freed || movement != null);
            } else {
                reports.spoiled(request);
            }
        } catch (IOException e) {
            reports.undeliverable(request, e.toString());
        } catch (CancellationException e) {
            LOG.debug("pull of {} was given up", order.key());
        } catch (RuntimeException e) { // the transfer cannot begin, or has failed
            reports.undeliverable(request, e.toString());
        }
    }

    private KvMovement move(SimRequest request, PullOffer offer) {
        if (offer.record() == null) {
            throw new IllegalStateException("the prefill engine's blocks have no bytes");
        }
        final List<Integer> from = new ArrayList<>();
        final List<Integer> to = new ArrayList<>();
        final int first = request.blockCount - request.pull.blocks;
        for (int i = first; i < request.blockCount; i++) {
            from.add(offer.firstBlock() + offer.blocks().get(i));
            to.add(memory.firstBlock(request.rank) + request.blocks[i]);
        }
        return memory.pull(Base64.getDecoder().decode(offer.record()), from, to);
    }

    /** Checks the first or the second half of the layers; without bytes nothing can be wrong. */
    private boolean check(SimRequest request, KvMovement movement, boolean firstHalf) {
        if (movement == null) {
            return true;
        }
        if (!firstHalf) {
            movement.openAll();
        }
        final int half = movement.layers() / 2;
        return movement.check(
                firstHalf ? 0 : half,
                firstHalf ? half : movement.layers(),
                layer ->
                        memory.matches(
                                request, layer, request.computed, request.script.promptTokens()));
    }

    private static JsonNode answer(InputStream in) throws IOException {
        final JsonNode answer = SideMessages.read(in);
        if (answer == null) {
            throw new EOFException("the side port closed the connection");
        }
        return answer;
    }
}
