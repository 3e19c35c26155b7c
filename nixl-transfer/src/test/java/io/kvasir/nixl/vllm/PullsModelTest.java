package io.kvasir.nixl.vllm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.StrictTransport;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * Pulls from engines of one and of two ranks over a transport that fails: blocks of which a rank
 * was told that they are not needed any more are read no more, no rank is told twice, and in the
 * end nothing is left.
 */
class PullsModelTest {
    private static final int TRIALS = Trials.of(120, 1_500);
    private static final int STEPS = 120;
    private static final int HEADS = 2;

    @Tag("trials")
    @Test
    void blocksThatWereGivenBackAreNotReadAndNoRankIsToldTwice() {
        final long seed = Seeds.next("PullsModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    private static final class Model {
        private final Random random;
        private final StrictTransport transport;
        private final VllmPrefillPeer peer;
        private final Map<String, List<Long>> reads = new HashMap<>(); // not ended
        private final List<Long> unreleased = new ArrayList<>();
        private final Set<String> told = new HashSet<>(); // "rank request:consumers"
        private int heard;
        private int prefills;
        private long nowNs;

        Model(Random random) {
            this.random = random;
            transport = new StrictTransport(random);
            peer =
                    new VllmPrefillPeer(
                            transport,
                            new VllmCache(
                                    List.of(part("own", 9, 1)),
                                    VllmCacheLayout.plain("LBHNC", 32, "CPU_ATTN"),
                                    TensorRank.only(HEADS)),
                            VllmPrefillPeer.Options.DEFAULT);
        }

        private static KvRegion part(String name, long megabyte, int ranks) {
            final int bytes = 4_096 / ranks;
            return new KvRegion(name, 0, NixlMemory.DRAM, 0, megabyte << 20, bytes, bytes, 10);
        }

        private static VllmEngine engine(String engineId) {
            final int ranks = ranks(engineId);
            return Golden.engine(engineId, ranks, rank -> List.of(part("layer", 1L + rank, ranks)));
        }

        private static int ranks(String engineId) {
            return engineId.equals("pair") ? 2 : 1;
        }

        void run() {
            transport.faults = 2 + random.nextInt(10);
            for (int step = 0; step < STEPS; step++) {
                act();
                hear();
                assertEquals(List.of(), transport.violations);
            }
            transport.faults = 0;
            for (int i = 0; i < 100; i++) {
                poll();
                letGo();
                hear();
            }
            assertEquals(Map.of(), reads);
            peer.close();
            assertEquals(0, peer.leases());
            assertEquals(0, transport.remoteLists() + transport.localLists());
            assertEquals(Map.of(), transport.peers);
            assertEquals(List.of(), transport.violations);
        }

        private void act() {
            final String engineId = random.nextBoolean() ? "one" : "pair";
            nowNs += TimeUnit.SECONDS.toNanos(random.nextInt(3));
            try {
                switch (random.nextInt(14)) {
                    case 0, 1 -> peer.connect(engine(engineId));
                    case 2, 3 -> hold(engineId);
                    case 4, 5 -> pull(any());
                    case 6 -> peer.release(any(), nowNs);
                    case 7 -> disconnect(engineId);
                    case 8, 9 -> peer.heartbeat(nowNs);
                    case 10, 11 -> letGo();
                    default -> poll();
                }
            } catch (VllmPeerException | KvTransportException e) {
                // refused, as documented; the laws hold all the same
            }
        }

        private String any() {
            return "prefill" + random.nextInt(prefills + 1);
        }

        private void hold(String engineId) {
            final String id = "prefill" + prefills;
            peer.hold(Golden.params(engineId, id, ranks(engineId)), nowNs);
            prefills++;
        }

        private void pull(String id) {
            for (long request : peer.pull(id, new int[2], nowNs)) {
                reads.computeIfAbsent(id, _ -> new ArrayList<>()).add(request);
            }
            told.forEach(
                    message ->
                            assertTrue(
                                    !message.endsWith(" " + id + ":1"),
                                    () -> "read after it was given back: " + message));
            reads.get(id).forEach(transport::post);
        }

        private void poll() {
            for (String id : List.copyOf(reads.keySet())) {
                for (long request : List.copyOf(reads.get(id))) {
                    final Progress progress = transport.status(request);
                    if (progress != Progress.RUNNING) {
                        ended(id, request, progress);
                    }
                }
            }
        }

        private void ended(String id, long request, Progress progress) {
            reads.get(id).remove(request);
            if (reads.get(id).isEmpty()) {
                reads.remove(id);
            }
            unreleased.add(request);
            try {
                peer.pullEnded(id, progress, nowNs);
            } catch (VllmPeerException e) {
                assertEquals(VllmPeerException.Kind.EXPIRED, e.kind());
            } catch (KvTransportException e) {
                assertTrue(transport.faults > 0, e.getMessage());
            }
        }

        private void letGo() {
            unreleased.removeIf(transport::release);
        }

        private void disconnect(String engineId) {
            if (unreleased.isEmpty()) {
                peer.disconnect(engineId);
            }
        }

        private void hear() {
            for (; heard < transport.sent.size(); heard++) {
                final String message = transport.sent.get(heard);
                if (!message.contains("HB:")) {
                    assertTrue(told.add(message), () -> "told twice: " + message);
                }
            }
        }
    }
}
