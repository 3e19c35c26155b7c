package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.Transfer.Priority;
import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.exchange.PeerMemory;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.StrictTransport;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

/**
 * Transfers of all forms over links that come and leave, on a transport that fails at each step of
 * a request, with listeners that submit, cancel, throw and close. Each transfer ends once, what is
 * done has moved all of its blocks once and notified the peer of each stage in order, limits hold
 * after each round, and when all is quiet nothing is left.
 */
class TransferEngineModelTest {
    private static final int TRIALS = 200;
    private static final int STEPS = 120;
    private static final int PEERS = 2;
    private static final int QUEUE = 6;
    private static final int REQUESTS = 3;
    private static final int BLOCK_BYTES = 512;
    private static final int REQUEST_BLOCKS = 3;
    private static final long MS = 1_000_000;
    private static final List<Priority> PRIORITIES = List.of(Priority.values());
    private static final Descriptors BLOCKS =
            new PeerMemory.Pool(
                            KvLayout.of(KvLayout.Order.LAYER_MAJOR, 1 << 14, 1, BLOCK_BYTES), 4096)
                    .descriptors();

    @Test
    void eachTransferEndsOnceAndNothingIsLeft() {
        final long seed = Seeds.next("TransferEngineModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try {
                new Model(new Random(seed + trial)).run();
            } catch (Throwable e) {
                throw new AssertionError("trial " + trial + ", -Dseed=" + (seed + trial), e);
            }
        }
    }

    /** A link, wanted or made. */
    private static final class Link {
        private CompletableFuture<KvLink> linking;
        private CompletableFuture<Void> leaving;
    }

    private static final class Model {
        private final Random random;
        private final StrictTransport transport;
        private final TransferEngine engine;
        private final LocalBlocks own;
        private final Map<String, Link> links = new HashMap<>();
        private final List<Sent> all = new ArrayList<>();
        private long nowNs;
        private int nextBlock;
        private boolean settled;

        Model(Random random) {
            this.random = random;
            transport = new StrictTransport(random);
            engine =
                    new TransferEngine(
                            transport,
                            new TransferConfig(
                                    QUEUE,
                                    REQUESTS,
                                    5 * BLOCK_BYTES,
                                    REQUEST_BLOCKS * BLOCK_BYTES,
                                    REQUEST_BLOCKS),
                            () -> nowNs += 10_000,
                            (peer, message) -> {});
            final CompletableFuture<LocalBlocks> local = engine.local(BLOCKS);
            engine.doWork();
            own = local.join();
        }

        /** A transfer and what became of it. */
        private final class Sent implements Transfer.Listener {
            private final int id = all.size();
            private final Transfer transfer;
            private final String peer;
            private final List<List<Integer>> stages = new ArrayList<>();
            private final List<Boolean> notifies = new ArrayList<>();
            private CompletableFuture<Transfer> future;
            private int completed;
            private State end; // null before

            Sent(Transfer transfer, String peer, KvLink link) {
                this.transfer = transfer;
                this.peer = peer;
                transfer.pull(own, link).listener(this);
                if (random.nextInt(4) == 0) {
                    transfer.gated();
                }
                for (int stage = random.nextInt(4); stage >= 0; stage--) {
                    final List<Integer> blocks = new ArrayList<>();
                    for (int block = random.nextInt(8); block >= 0; block--) {
                        transfer.add(nextBlock, nextBlock);
                        blocks.add(nextBlock++);
                    }
                    final boolean notifying = random.nextBoolean();
                    transfer.endStage(
                            notifying
                                    ? text(stages.size()).getBytes(StandardCharsets.US_ASCII)
                                    : null);
                    stages.add(blocks);
                    notifies.add(notifying);
                }
                transfer.priority(PRIORITIES.get(random.nextInt(PRIORITIES.size())));
                if (random.nextInt(4) == 0) {
                    transfer.deadlineNs(nowNs + random.nextInt(20) * MS);
                }
            }

            private String text(int stage) {
                return id + "." + stage;
            }

            @Override
            public void onStage(Transfer same, int stage) {
                assertEquals(null, end, "a stage after the end");
                assertEquals(completed, stage);
                completed++;
                assertTrue(transport.moved.containsAll(stages.get(stage)));
                if (notifies.get(stage)) {
                    assertTrue(transport.sent.contains(peer + " " + text(stage)));
                }
                if (!settled) {
                    callIn(random.nextInt(12));
                }
            }

            @Override
            public void onEnd(Transfer same) {
                assertEquals(null, end, "a second end");
                end = transfer.state();
                assertTrue(end.isEnd());
                assertEquals(end == State.DONE, transfer.failure() == null);
                check();
                if (!settled) {
                    callIn(random.nextInt(10));
                }
            }

            private void callIn(int what) {
                switch (what) {
                    case 0 -> transfer.cancel();
                    case 1 -> submit(end != null ? transfer : new Transfer());
                    case 2 -> leave("peer" + random.nextInt(PEERS));
                    case 3 -> closeRarely();
                    case 4 -> throw new IllegalStateException("scripted");
                    case 5 -> {
                        var _ = engine.call(KvTransport::name);
                    }
                    default -> {}
                }
            }

            /** What has moved when it is over. */
            private void check() {
                final List<String> expected = new ArrayList<>();
                for (int stage = 0; stage < stages.size(); stage++) {
                    for (int block : stages.get(stage)) {
                        final int times = Collections.frequency(transport.moved, block);
                        assertTrue(end == State.DONE ? times == 1 : times <= 1, "moves: " + times);
                    }
                    if (notifies.get(stage)) {
                        expected.add(peer + " " + text(stage));
                    }
                }
                final List<String> sent =
                        transport.sent.stream()
                                .filter(message -> message.startsWith(peer + " " + id + "."))
                                .toList();
                assertEquals(end == State.DONE ? expected : expected.subList(0, sent.size()), sent);
                assertEquals(completed, transfer.completedStages());
                assertTrue(end != State.DONE || completed == stages.size());
            }

            private void checkFuture() {
                if (future != null) {
                    assertEquals(end != null, future.isDone());
                    assertEquals(
                            end != null && end != State.DONE, future.isCompletedExceptionally());
                }
            }
        }

        void run() {
            transport.faults = random.nextInt(4) == 0 ? 0 : 2 + random.nextInt(150);
            for (int step = 0; step < STEPS; step++) {
                act();
                checkAll();
            }
            settle();
            engine.close();
            work();
            for (Sent sent : all) {
                assertTrue(sent.end != null, "it never ends");
                sent.checkFuture();
            }
            for (Link link : links.values()) {
                assertTrue(link.linking.isDone());
                assertTrue(link.leaving == null || link.leaving.isDone());
            }
            assertEquals(List.of(), transport.violations);
            assertEquals(0, transport.requests());
            assertEquals(0, engine.stuckRequests());
        }

        private void act() {
            final String peer = "peer" + random.nextInt(PEERS);
            switch (random.nextInt(24)) {
                case 0, 1 -> link(peer);
                case 2 -> leave(peer);
                case 3, 4, 5, 6, 7 -> submit(new Transfer());
                case 8 -> cancelOne();
                case 9, 10 -> openOne();
                case 11 -> nowNs += random.nextInt(6_000) * MS;
                case 12 -> nowNs += random.nextInt(20) * MS;
                case 13 -> endLinking(peer);
                case 14 -> closeRarely();
                default -> work();
            }
        }

        private void link(String peer) {
            final Link before = links.get(peer);
            if (before != null && !isForgotten(before)) {
                return;
            }
            final Link link = new Link();
            link.linking =
                    engine.link(
                            (peer + "#" + random.nextInt()).getBytes(StandardCharsets.US_ASCII),
                            BLOCKS);
            links.put(peer, link);
        }

        private static boolean isForgotten(Link link) {
            final boolean refused =
                    link.linking.isCompletedExceptionally() && !link.linking.isCancelled();
            final boolean left =
                    link.leaving != null
                            && link.leaving.isDone()
                            && !link.leaving.isCompletedExceptionally();
            return refused || left;
        }

        /** The caller gives it up before the engine has made it. */
        private void endLinking(String peer) {
            final Link link = links.get(peer);
            if (link != null && link.linking.cancel(false)) {
                work();
                assertFalse(transport.peers.containsKey(peer), "left by a link without a caller");
                links.remove(peer);
            }
        }

        private void leave(String peer) {
            final Link link = links.get(peer);
            if (link != null && isLinked(link) && (link.leaving == null || link.leaving.isDone())) {
                link.leaving = engine.unlink(link.linking.join());
            }
        }

        private static boolean isLinked(Link link) {
            return link.linking.isDone() && !link.linking.isCompletedExceptionally();
        }

        private void submit(Transfer transfer) {
            final String peer = "peer" + random.nextInt(PEERS);
            final Link link = links.get(peer);
            if (link == null || !isLinked(link)) {
                return;
            }
            final Sent sent = new Sent(transfer, peer, link.linking.join());
            all.add(sent);
            final long live = all.stream().filter(one -> one.end == null).count() - 1;
            final boolean taken;
            if (random.nextBoolean()) {
                sent.future = engine.move(transfer);
                taken = !sent.future.isCompletedExceptionally();
            } else {
                taken = engine.submit(transfer);
            }
            assertTrue(taken || live >= QUEUE || engine.isClosed(), "refused with room");
            if (!taken) {
                assertEquals(State.NEW, transfer.state());
                all.removeLast();
            }
        }

        private void cancelOne() {
            if (!all.isEmpty()) {
                all.get(random.nextInt(all.size())).transfer.cancel();
            }
        }

        private void openOne() {
            if (!all.isEmpty()) {
                final Sent sent = all.get(random.nextInt(all.size()));
                sent.transfer.openStages(random.nextInt(5));
            }
        }

        private void closeRarely() {
            if (random.nextInt(30) == 0) {
                scripted(engine::close);
            }
        }

        private void work() {
            scripted(engine::doWork);
        }

        private static void scripted(Runnable call) {
            try {
                call.run();
            } catch (IllegalStateException e) {
                assertEquals("scripted", e.getMessage());
            }
        }

        private void checkAll() {
            assertEquals(List.of(), transport.violations);
            assertTrue(transport.requests() <= REQUESTS, "requests in flight");
            assertTrue(engine.stuckRequests() <= transport.requests());
            all.forEach(Sent::checkFuture);
        }

        /** All that may end does, in a bounded number of rounds. */
        private void settle() {
            transport.faults = 0;
            settled = true;
            all.stream()
                    .filter(sent -> sent.end == null)
                    .forEach(sent -> sent.transfer.openStages(9));
            for (int round = 0; round < 600; round++) {
                work();
            }
            all.forEach(sent -> assertTrue(sent.end != null, "it never ends"));
            links.keySet().forEach(this::leave);
            for (int round = 0; round < 5; round++) {
                work();
            }
            if (!engine.isClosed()) {
                assertEquals(Map.of(), transport.peers);
                assertEquals(0, transport.remoteLists());
                assertEquals(1, transport.localLists());
            }
            assertEquals(0, transport.requests());
            assertEquals(0, engine.stuckRequests());
        }
    }
}
