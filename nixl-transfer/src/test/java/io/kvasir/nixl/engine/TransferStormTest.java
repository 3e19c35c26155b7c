package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.Transfer.Priority;
import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvPool;
import io.kvasir.nixl.transport.FakeNixl;
import io.kvasir.nixl.transport.NixlTransport;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CompletableFuture;

/**
 * Random faults of the loopback library under random transfers. The model is a list of free blocks
 * on either side: a block that a transfer has given back stays as it was left until another
 * transfer takes it, or it was reused before the transport had let go of it.
 */
class TransferStormTest {
    private static final KvLayout LAYOUT = KvLayout.of(Order.BLOCK_MAJOR, 64, 1, 256);
    private static final int PEERS = 3;
    private static final int STEPS = 6_000;
    private static final int MOST_BLOCKS = 12;
    private static final int STAGE_BLOCKS = 4;
    private static final byte QUIET = 0x5A;
    private static final List<Priority> PRIORITIES =
            List.of(Priority.HIGH, Priority.NORMAL, Priority.LOW);

    private final FakeNixl fake = FakeNixl.get();
    private final Side own = new Side(fake.transport("storm"));
    private final List<Peer> peers = new ArrayList<>();
    private final Map<State, Integer> ended = new EnumMap<>(State.class);
    private final List<Running> running = new ArrayList<>();
    private TransferEngine engine;
    private LocalBlocks blocks;
    private long skippedNs;
    private long version;
    private int submitted;

    /** An end, its memory, and which of its blocks are unused. */
    private static final class Side {
        private final NixlTransport transport;
        private final KvPool pool = KvPool.allocate(LAYOUT);
        private final List<Integer> free = new ArrayList<>();

        private Side(NixlTransport transport) {
            this.transport = transport;
            transport.register(pool.regions());
            for (int block = 0; block < LAYOUT.groups().getFirst().blocks(); block++) {
                give(block);
            }
        }

        private MemorySegment block(int block) {
            return pool.block(pool.regions().getFirst(), block);
        }

        private void give(int block) {
            block(block).fill(QUIET);
            free.add(block);
        }

        private int take() {
            final int block = free.removeLast();
            assertTrue(isQuiet(block), "block " + block + " was written after it was given back");
            return block;
        }

        private boolean isQuiet(int block) {
            final MemorySegment memory = block(block);
            final MemorySegment quiet = MemorySegment.ofArray(new byte[(int) memory.byteSize()]);
            quiet.fill(QUIET);
            return memory.mismatch(quiet) < 0;
        }
    }

    /** A peer and the link to it. */
    private static final class Peer {
        private final String name;
        private final Side side;
        private KvLink link;

        private Peer(String name, Side side) {
            this.name = name;
            this.side = side;
        }
    }

    /** A transfer and the blocks that it has. */
    private final class Running implements Transfer.Listener {
        private final Peer peer;
        private final boolean pulls;
        private final List<Integer> local = new ArrayList<>();
        private final List<Integer> remote = new ArrayList<>();
        private final Transfer transfer = new Transfer();
        private final long seed = ++version * 1_000;
        private int open; // stages, if it is gated
        private int ends;

        private Running(Peer peer, boolean pulls, int count) {
            this.peer = peer;
            this.pulls = pulls;
            if (pulls) {
                transfer.pull(blocks, peer.link);
            } else {
                transfer.push(blocks, peer.link);
            }
            transfer.listener(this);
            for (int i = 0; i < count; i++) {
                local.add(own.take());
                remote.add(peer.side.take());
                if (i > 0 && i % STAGE_BLOCKS == 0) {
                    transfer.endStage(null);
                }
                Loopbacks.fill(
                        pulls ? peer.side.block(remote.getLast()) : own.block(local.getLast()),
                        seed + i);
                transfer.add(local.getLast(), remote.getLast());
            }
        }

        private void openNext() {
            transfer.openStages(++open);
        }

        @Override
        public void onEnd(Transfer ending) {
            assertEquals(1, ++ends, "ends of one transfer");
            final State state = ending.state();
            ended.merge(state, 1, Integer::sum);
            assertTrue(state.isEnd());
            if (state == State.DONE) {
                assertNull(ending.failure());
                for (int i = 0; i < local.size(); i++) {
                    assertTrue(
                            Loopbacks.isFilled(
                                    pulls
                                            ? own.block(local.get(i))
                                            : peer.side.block(remote.get(i)),
                                    seed + i));
                }
            } else {
                assertNotNull(ending.failure(), state + " without a name");
            }
            local.forEach(own::give);
            remote.forEach(peer.side::give);
        }
    }

    @Test
    void noBlockIsReusedBeforeItIsReleasedAndEveryTransferEndsOnce() {
        final Random random = new Random(Seeds.next("storm"));
        engine =
                new TransferEngine(
                        own.transport,
                        new TransferConfig(16, 8, 2048, 1024, 3),
                        () -> System.nanoTime() + skippedNs,
                        (peer, message) -> {});
        blocks = now(engine.local(own.pool.descriptors()));
        for (int i = 0; i < PEERS; i++) {
            final String name = "peer" + i;
            peers.add(new Peer(name, new Side(fake.transport(name))));
            connect(peers.getLast());
        }
        for (int step = 0; step < STEPS; step++) {
            step(random, peers.get(random.nextInt(PEERS)));
            engine.doWork();
            running.removeIf(one -> one.ends > 0);
        }
        fake.heal();
        final long start = System.nanoTime();
        while (!running.isEmpty()) {
            assertTrue(System.nanoTime() - start < Loopbacks.DEADLINE_NS, "they never end");
            running.forEach(Running::openNext);
            engine.doWork();
            running.removeIf(one -> one.ends > 0);
        }
        assertEquals(0, engine.stuckRequests());
        ended.forEach(
                (state, count) -> assertEquals((long) count, engine.telemetry().transfers(state)));
        engine.close();
        for (Peer peer : peers) {
            peer.side.transport.close();
            checkQuiet(peer.side);
        }
        checkQuiet(own);
        assertEquals(submitted, ended.values().stream().mapToInt(Integer::intValue).sum());
        assertEquals(4, ended.size(), "every kind of end: " + ended);
        assertEquals(0, fake.liveHandles());
    }

    private static void checkQuiet(Side side) {
        Collections.shuffle(side.free, new Random(1));
        final ArrayDeque<Integer> left = new ArrayDeque<>(side.free);
        assertEquals(LAYOUT.groups().getFirst().blocks(), left.size());
        left.forEach(block -> assertTrue(side.isQuiet(block), "block " + block));
        side.pool.close();
    }

    private void step(Random random, Peer peer) {
        switch (random.nextInt(40)) {
            case 0 -> fake.delay(peer.name, random.nextInt(300));
            case 1 -> fake.stick(peer.name, true);
            case 2, 3 -> fake.stick(peer.name, false);
            case 4 -> fake.disconnect(peer.name);
            case 5 -> fake.failReleases("storm", random.nextInt(6));
            case 6 -> fake.loseNotifications(peer.name, 1);
            case 7 -> fake.heal();
            case 8 -> skippedNs += random.nextInt(1_000_000);
            case 9, 10 -> cancelOne(random);
            case 11, 12 -> {
                if (!peer.link.isUp()) {
                    now(engine.unlink(peer.link));
                    connect(peer);
                }
            }
            case 14, 15, 16, 17, 18 -> openOne(random);
            case 13 -> peer.side.transport.notifications((name, message) -> {});
            default -> submit(random, peer);
        }
    }

    private void connect(Peer peer) {
        peer.link = now(engine.link(peer.side.transport.metadata(), peer.side.pool.descriptors()));
    }

    private void cancelOne(Random random) {
        if (!running.isEmpty()) {
            running.get(random.nextInt(running.size())).transfer.cancel();
        }
    }

    private void openOne(Random random) {
        if (!running.isEmpty()) {
            running.get(random.nextInt(running.size())).openNext();
        }
    }

    private void submit(Random random, Peer peer) {
        final int count = 1 + random.nextInt(MOST_BLOCKS);
        if (running.size() >= 12 || own.free.size() < count || peer.side.free.size() < count) {
            return;
        }
        Collections.shuffle(own.free, random);
        Collections.shuffle(peer.side.free, random);
        final Running one = new Running(peer, random.nextBoolean(), count);
        if (random.nextInt(3) == 0) {
            one.transfer.deadlineNs(System.nanoTime() + skippedNs + random.nextInt(2_000_000));
        }
        one.transfer.priority(PRIORITIES.get(random.nextInt(PRIORITIES.size())));
        one.transfer.endStage(new byte[] {1});
        if (random.nextInt(3) == 0) {
            one.transfer.gated();
        }
        assertTrue(engine.submit(one.transfer), "room for 12 transfers");
        running.add(one);
        submitted++;
    }

    private <T> T now(CompletableFuture<T> future) {
        do {
            engine.doWork();
        } while (!future.isDone());
        return future.join();
    }
}
