package io.kvasir.nixl.link;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.engine.LocalBlocks;
import io.kvasir.nixl.engine.Transfer;
import io.kvasir.nixl.engine.TransferConfig;
import io.kvasir.nixl.engine.TransferEngine;
import io.kvasir.nixl.exchange.PeerMemory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.nixl.link.ManagedLink.State;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.StrictTransport;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/**
 * Links to peers that restart, leave and come back, over a transport that fails, with listeners
 * that call in. Nothing is used after its release, a peer's former life is forgotten before the
 * next is met, each transfer ends once, and when all is well again each link is up, or nothing is
 * left of it.
 */
class LinksModelTest {
    private static final int TRIALS = Trials.of(50, 600);
    private static final int STEPS = 150;
    private static final int PEERS = 3;
    private static final long MS = 1_000_000;

    @Tag("trials")
    @Test
    void linksComeUpAgainAndLeaveNothing() {
        final long seed = Seeds.next("LinksModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    private static final class Model {
        private final Random random;
        private final StrictTransport transport;
        private final ViewExchange exchange = new ViewExchange();
        private final TransferEngine engine;
        private final LinkManager manager;
        private final LocalBlocks own;
        private final Map<String, Long> lives = new HashMap<>();
        private final Map<String, PeerRecord> published = new HashMap<>();
        private final Map<String, ManagedLink> kept = new HashMap<>();
        private final Set<ManagedLink> givenUp = new HashSet<>();
        private final List<int[]> ends = new ArrayList<>(); // how often each transfer has ended
        private long nowNs;
        private boolean keeperClosed;
        private boolean settled;

        Model(Random random) {
            this.random = random;
            transport = new StrictTransport(random);
            engine =
                    new TransferEngine(
                            transport,
                            new TransferConfig(16, 4, 1 << 20, 1 << 20, 2),
                            () -> nowNs += 1_000,
                            (peer, message) -> {});
            final LinkConfig config =
                    new LinkConfig(
                            PEERS,
                            Duration.ofMillis(10),
                            Duration.ofMillis(50),
                            0.5,
                            Duration.ofMillis(1));
            manager = new LinkManager(exchange, engine, config, () -> nowNs, random);
            final var local = engine.local(new PeerMemory.Pool(Records.LAYOUT, 4096).descriptors());
            engine.doWork();
            own = local.join();
        }

        void run() {
            transport.faults = 2 + random.nextInt(20);
            for (int step = 0; step < STEPS; step++) {
                act();
                assertEquals(List.of(), transport.violations);
            }
            transport.faults = 0;
            settled = true;
            settle();
            if (!keeperClosed) {
                allAreUp();
            }
            manager.close();
            while (manager.doWork() > 0) {
                work();
                nowNs += 100 * MS;
            }
            assertEquals(Map.of(), transport.peers);
            assertEquals(0, transport.remoteLists());
            assertEquals(Map.of(), kept);
            engine.close();
            assertEquals(List.of(), transport.violations);
            assertEquals(0, transport.requests());
            ends.forEach(count -> assertEquals(1, count[0], "ends of a transfer"));
        }

        private void act() {
            final String peer = "peer" + random.nextInt(PEERS);
            switch (random.nextInt(24)) {
                case 0, 1 -> restart(peer);
                case 2 -> registerMore(peer);
                case 3 -> withdraw(peer);
                case 4, 5 -> keep(peer);
                case 6 -> giveUp(peer);
                case 7, 8, 9, 10 -> pull(peer);
                case 11, 12, 13, 14 -> work();
                case 15 -> nowNs += random.nextInt(6_000) * MS;
                case 16, 17 -> nowNs += random.nextInt(20) * MS;
                case 18 -> crowd();
                case 19 -> closeRarely();
                default -> manager.doWork();
            }
        }

        private void restart(String peer) {
            lives.merge(peer, 1L, Long::sum);
            publish(peer, 1);
        }

        private void registerMore(String peer) {
            if (published.containsKey(peer)) {
                publish(peer, published.get(peer).generation() + 1);
            }
        }

        private void publish(String peer, long generation) {
            final long life = lives.get(peer);
            final PeerRecord record =
                    new PeerRecord(
                            peer,
                            life,
                            generation,
                            (peer + "#" + life).getBytes(StandardCharsets.US_ASCII),
                            new PeerMemory.Pool(Records.LAYOUT, 4096),
                            "");
            exchange.publish(record);
            published.put(peer, record);
        }

        private void withdraw(String peer) {
            exchange.withdraw(peer);
            published.remove(peer);
        }

        private void keep(String peer) {
            if (keeperClosed) {
                return;
            }
            if (kept.containsKey(peer)) {
                assertThrows(IllegalArgumentException.class, () -> keepNow(peer));
            } else {
                kept.put(peer, keepNow(peer));
            }
        }

        private ManagedLink keepNow(String peer) {
            return manager.keep(peer, "", (link, state, why) -> changed(link, state));
        }

        private void changed(ManagedLink link, State state) {
            assertEquals(state, link.state());
            if (state == State.CLOSED) {
                kept.remove(link.peer(), link);
            }
            if (settled) {
                return;
            }
            switch (random.nextInt(12)) {
                case 0, 1 -> giveUp(link.peer());
                case 2 -> keep("peer" + random.nextInt(PEERS));
                case 3 -> pull(link.peer());
                case 4 -> closeRarely();
                default -> {}
            }
        }

        private void giveUp(String peer) {
            final ManagedLink link = kept.get(peer);
            if (link != null) {
                link.close();
                givenUp.add(link);
            }
        }

        private void pull(String peer) {
            final ManagedLink link = kept.get(peer);
            if (link == null || link.state() != State.UP) {
                return;
            }
            final int[] count = new int[1];
            final Transfer transfer =
                    new Transfer()
                            .pull(own, link.link())
                            .listener(
                                    ended -> {
                                        count[0]++;
                                        assertTrue(ended.state().isEnd());
                                        endedOne(peer);
                                    });
            for (int i = random.nextInt(6); i >= 0; i--) {
                transfer.add(i, i);
            }
            if (random.nextInt(4) == 0) {
                transfer.deadlineNs(nowNs + random.nextInt(20) * MS);
            }
            if (engine.submit(transfer)) {
                ends.add(count);
            }
        }

        private void endedOne(String peer) {
            if (!settled) {
                switch (random.nextInt(8)) {
                    case 0 -> giveUp(peer);
                    case 1 -> pull(peer);
                    case 2 -> throw new IllegalStateException("scripted");
                    default -> {}
                }
            }
        }

        /** So many calls that the engine takes no more. */
        private void crowd() {
            for (int i = 0; i < 256; i++) {
                var _ = engine.call(KvTransport::name);
            }
        }

        private void closeRarely() {
            if (random.nextInt(20) == 0) {
                transport.faults = 0;
                keeperClosed = true;
                manager.close();
            }
        }

        private void work() {
            try {
                engine.doWork();
            } catch (IllegalStateException e) {
                assertEquals("scripted", e.getMessage());
            }
        }

        private void settle() {
            for (int round = 0; round < 200; round++) {
                manager.doWork();
                work();
                nowNs += 100 * MS;
            }
        }

        private void allAreUp() {
            final Map<String, String> up = new HashMap<>();
            kept.forEach(
                    (peer, link) -> {
                        assertFalse(givenUp.contains(link), link::toString);
                        if (published.containsKey(peer)) {
                            assertEquals(State.UP, link.state(), link::toString);
                            assertEquals(published.get(peer), link.linked().record());
                            up.put(peer, peer + "#" + lives.get(peer));
                        }
                    });
            assertEquals(up, transport.peers);
            assertEquals(up.size(), transport.remoteLists());
            assertEquals(0, transport.requests());
        }
    }
}
