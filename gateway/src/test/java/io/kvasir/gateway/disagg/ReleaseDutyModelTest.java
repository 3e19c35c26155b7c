package io.kvasir.gateway.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.vllm.LeaseTerms;
import io.kvasir.nixl.vllm.VllmEngine;
import io.kvasir.nixl.vllm.VllmPeerException;
import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * Prefills of engines that restart, hang and come back, some of them under one name at several
 * engines. Blocks are freed at most once, never before they are to be, and never once fetched; an
 * engine that can be reached keeps what is open and frees what is free; each end is counted once.
 */
class ReleaseDutyModelTest {
    private static final int TRIALS = Trials.of(60, 1_000);
    private static final int STEPS = 100;
    private static final int PORTS = 3;
    private static final int LEASE_S = 30;
    private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

    @Tag("trials")
    @Test
    void blocksAreKeptWhileTheyMayBeFetchedAndFreedOnce() {
        final long seed = Seeds.next("ReleaseDutyModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final Model model = new Model(new Random(seed + trial));
            try {
                model.run();
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError(
                        "-Dseed=" + (seed + trial) + "\n" + String.join("\n", model.trace), e);
            }
        }
    }

    /** Blocks that an engine holds. */
    private static final class Prefill {
        final Engine engine;
        final String request;
        final WatchedPrefill watched;
        long leaseEndNs;
        boolean ended;
        boolean fetched;
        boolean doubtful; // its engine was not reached meanwhile

        Prefill(Engine engine, String request, WatchedPrefill watched, long leaseEndNs) {
            this.engine = engine;
            this.request = request;
            this.watched = watched;
            this.leaseEndNs = leaseEndNs;
        }

        @Override
        public String toString() {
            return request + "@" + engine.id;
        }
    }

    /** A start of an engine. */
    private static final class Engine {
        final String id;
        final int port;
        final Map<String, Prefill> prefills = new HashMap<>();
        boolean hangs;

        Engine(String id, int port) {
            this.id = id;
            this.port = port;
        }
    }

    /** One run. */
    private static final class Model {
        final List<String> trace = new ArrayList<>();
        private final Random random;
        private final Engine[] running = new Engine[PORTS];
        private final Map<String, Engine> peers = new HashMap<>(); // connected, by name
        private final List<Prefill> all = new ArrayList<>();
        private final List<Runnable> asking = new ArrayList<>();
        private final ReleaseCounters counters = new ReleaseCounters();
        private final ReleaseDuty duty;
        private long nowNs;
        private int starts;

        Model(Random random) {
            this.random = random;
            nowNs = random.nextLong();
            duty =
                    new ReleaseDuty(
                            transport(),
                            this::ask,
                            asking::add,
                            new LeaseTerms(LEASE_S, SECOND),
                            ReleaseDuty.Limits.DEFAULT,
                            counters,
                            () -> {});
            for (int port = 0; port < PORTS; port++) {
                start(port);
            }
        }

        void run() {
            for (int step = 0; step < STEPS; step++) {
                switch (random.nextInt(10)) {
                    case 0, 1, 2 -> prefill(running[random.nextInt(PORTS)]);
                    case 3, 4 -> end();
                    case 5 -> hang(random.nextInt(PORTS));
                    case 6 -> {
                        if (random.nextInt(4) == 0) {
                            start(random.nextInt(PORTS));
                        }
                    }
                    default -> pass(1 + random.nextInt(random.nextInt(4) == 0 ? 120 : 12));
                }
            }
            for (Engine engine : running) {
                engine.hangs = false;
            }
            all.forEach(this::end);
            pass(4 * 10);
            for (Engine engine : running) {
                for (Prefill prefill : engine.prefills.values()) {
                    assertTrue(prefill.fetched || prefill.doubtful, () -> "not freed: " + prefill);
                }
            }
            pass(4 * LEASE_S);
            assertEquals(0, duty.held(), "held");
            assertFalse(duty.isFreeing(), "freeing");
            final BlockReleaseCounts counts = counters.with(0);
            assertEquals(all.size(), ended(counts), () -> "ends counted: " + counts);
            duty.close();
            assertTrue(peers.isEmpty(), () -> "connected: " + peers.keySet());
        }

        private static long ended(BlockReleaseCounts counts) {
            return counts.fetched()
                    + counts.released()
                    + counts.left().values().stream().mapToLong(n -> n).sum();
        }

        private void start(int port) {
            running[port] = new Engine("e" + starts++, port);
            trace.add("start " + running[port].id + " at " + port);
        }

        private void hang(int port) {
            final Engine engine = running[port];
            engine.hangs = !engine.hangs;
            engine.prefills.values().forEach(prefill -> prefill.doubtful = true);
            trace.add((engine.hangs ? "hang " : "go on ") + engine.id);
        }

        /** An engine that hangs has answered before it began to. */
        private void prefill(Engine engine) {
            final String request = "r" + (random.nextInt(4) == 0 ? random.nextInt(3) : all.size());
            if (engine.prefills.containsKey(request)) {
                return; // no engine gives a name twice
            }
            final Prefill prefill =
                    new Prefill(
                            engine,
                            request,
                            duty.watch(
                                            Prefills.params(engine.id, request, 5600 + engine.port),
                                            nowNs)
                                    .orElseThrow(),
                            nowNs + LEASE_S * SECOND);
            prefill.doubtful = engine.hangs;
            engine.prefills.put(request, prefill);
            all.add(prefill);
            trace.add("prefill " + prefill);
        }

        private void end() {
            if (!all.isEmpty()) {
                end(all.get(random.nextInt(all.size())));
            }
        }

        private void end(Prefill prefill) {
            if (prefill.ended) {
                prefill.watched.free(); // the first one counts
                return;
            }
            prefill.ended = true;
            prefill.fetched = random.nextBoolean();
            trace.add((prefill.fetched ? "fetched " : "free ") + prefill);
            if (prefill.fetched) {
                prefill.watched.fetched();
            } else {
                prefill.watched.free();
            }
        }

        /** In quarters of a second. */
        private void pass(int ticks) {
            trace.add("pass " + ticks + " quarters of a second");
            for (int tick = 0; tick < ticks; tick++) {
                duty.doWork(nowNs);
                while (!asking.isEmpty() && random.nextInt(8) > 0) {
                    asking.remove(random.nextInt(asking.size())).run();
                }
                duty.doWork(nowNs);
                nowNs += SECOND / 4;
                for (Engine engine : running) {
                    engine.prefills.values().removeIf(this::isOver);
                }
            }
        }

        private boolean isOver(Prefill prefill) {
            final boolean over = nowNs - prefill.leaseEndNs >= 0;
            assertTrue(
                    !over || prefill.fetched || prefill.doubtful,
                    () -> "the lease of " + prefill + " has ended");
            return over;
        }

        private VllmEngine ask(KvTransferParams params) {
            final Engine there = running[params.remotePort().orElseThrow() - 5600];
            if (there.hangs) {
                throw new VllmPeerException(VllmPeerException.Kind.TIMEOUT, "hangs");
            }
            if (!there.id.equals(params.remoteEngineId().orElseThrow())) {
                throw new VllmPeerException(VllmPeerException.Kind.OTHER_ENGINE, "ended");
            }
            return Prefills.engine(there.id);
        }

        private KvTransport transport() {
            return (KvTransport)
                    Proxy.newProxyInstance(
                            KvTransport.class.getClassLoader(),
                            new Class<?>[] {KvTransport.class},
                            (_, method, arguments) ->
                                    switch (method.getName()) {
                                        case "connect" -> connect(text(arguments[0]));
                                        case "disconnect" -> peers.remove((String) arguments[0]);
                                        case "send" ->
                                                send((String) arguments[0], text(arguments[1]));
                                        case "notifications" -> 0;
                                        case "close" -> null;
                                        default -> throw new AssertionError(method.getName());
                                    });
        }

        private static String text(Object bytes) {
            return new String((byte[]) bytes, StandardCharsets.UTF_8);
        }

        private String connect(String id) {
            for (Engine engine : running) {
                if (engine.id.equals(id)) {
                    peers.put(id, engine);
                    return id;
                }
            }
            throw new KvTransportException(KvTransportException.Kind.PEER_LOST, "ended");
        }

        private Void send(String peer, String message) {
            final Engine engine = peers.get(peer);
            if (engine == null || engine.hangs || running[engine.port] != engine) {
                throw new KvTransportException(KvTransportException.Kind.PEER_LOST, "not there");
            }
            trace.add(peer + " <- " + message);
            if (message.startsWith("HB:")) {
                for (String request : message.substring("HB:".length()).split(",", -1)) {
                    final Prefill prefill = engine.prefills.get(request);
                    if (prefill != null) {
                        prefill.leaseEndNs =
                                Math.max(prefill.leaseEndNs - nowNs, LEASE_S * 2L / 3 * SECOND)
                                        + nowNs;
                    }
                }
            } else {
                final String request = message.substring(0, message.lastIndexOf(':'));
                final Prefill prefill = engine.prefills.remove(request);
                assertTrue(prefill != null, () -> "freed, but not held: " + message);
                assertTrue(prefill.ended && !prefill.fetched, () -> "freed, but open: " + prefill);
            }
            return null;
        }
    }
}
