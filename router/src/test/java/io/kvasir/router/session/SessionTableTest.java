package io.kvasir.router.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;

/** Which worker a session is bound to. */
class SessionTableTest {
    private final SessionTable table = new SessionTable(64, 12345);

    private void bind(long key, long value, long nowNs, long ttlNs) {
        table.bind(key, table.find(key, nowNs), value, nowNs + ttlNs, nowNs);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, Long.MAX_VALUE - 50}) // the clock may run over
    void aBindingLastsUntilItsEndAndIsRenewed(long startNs) {
        assertEquals(SessionTable.NONE, table.find(7, startNs));
        bind(7, 3, startNs, 100);
        assertEquals(3, table.find(7, startNs + 99));
        assertEquals(SessionTable.NONE, table.find(7, startNs + 100));
        bind(7, 4, startNs + 100, 100);
        bind(7, 4, startNs + 150, 100);
        assertEquals(4, table.find(7, startNs + 249));
        assertEquals(1, table.count(startNs + 249));
        assertEquals(0, table.count(startNs + 250));
    }

    @Test
    void theFirstBindingWins() {
        final long seenByBoth = table.find(7, 0);
        table.bind(7, seenByBoth, 3, 100, 0);
        table.bind(7, seenByBoth, 4, 100, 0);
        assertEquals(3, table.find(7, 0));
        table.bind(7, 3, 4, 100, 0); // it was seen, and could not be used
        assertEquals(4, table.find(7, 0));
    }

    @Test
    void everyKeyAndValueCanBeUsed() {
        final long[] some = {0, -1, Long.MIN_VALUE, Long.MAX_VALUE, 1};
        for (long key : some) {
            bind(key, key == 0 ? 9 : key, 0, 10);
        }
        for (long key : some) {
            assertEquals(key == 0 ? 9 : key, table.find(key, 0));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 7, 8, 9, 64, 65, 1_000})
    void thereIsRoomForAsManyAsWasAskedFor(int sessions) {
        final int entries = new SessionTable(sessions, 1).entries();
        assertTrue(
                entries >= sessions && entries < Math.max(16, 4 * sessions), "entries " + entries);
    }

    @Test
    void whereThereIsNoRoomTheOneThatEndsSoonestIsForgotten() {
        final int sessions = 100_000;
        for (int i = 0; i < sessions; i++) {
            bind(i, 1L + i % 5, i, sessions);
            assertEquals(1 + i % 5, table.find(i, i), "the newest is always there");
        }
        assertEquals(table.entries(), table.count(sessions - 1), "all entries are taken");
        assertEquals(sessions - table.entries(), table.evicted());
        int newest = 0;
        for (int i = sessions - table.entries() / 4; i < sessions; i++) {
            newest += table.find(i, sessions - 1) == SessionTable.NONE ? 0 : 1;
        }
        assertTrue(newest > table.entries() / 8, "the newest stay: " + newest);
    }

    @Test
    void againstAMap() {
        final Random random = new Random(Seeds.next("SessionTableTest"));
        final SessionTable large = new SessionTable(4_096, random.nextLong());
        final Map<Long, long[]> model = new HashMap<>(); // value, end
        long nowNs = 0;
        for (int i = 0; i < 20_000; i++) {
            nowNs += random.nextInt(3);
            final long key = random.nextInt(200); // in 512 sets of 8: none is ever full
            final long[] known = model.get(key);
            final long expected = known == null || known[1] <= nowNs ? SessionTable.NONE : known[0];
            assertEquals(expected, large.find(key, nowNs));
            if (random.nextBoolean()) {
                final long value = 1L + random.nextInt(3);
                large.bind(key, expected, value, nowNs + 50, nowNs);
                model.put(key, new long[] {value, nowNs + 50});
            }
        }
        assertEquals(0, large.evicted());
        assertEquals(0, large.skipped());
    }

    /** Values say their key: a reader must never see one session's worker as another's. */
    @Test
    void readersBesideWritersSeeNoOthersBinding() throws Exception {
        final SessionTable small = new SessionTable(16, 3);
        final AtomicReference<String> wrong = new AtomicReference<>();
        final Thread[] threads = new Thread[4];
        for (int t = 0; t < threads.length; t++) {
            final Random random = new Random(t);
            threads[t] =
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        for (int i = 0; i < 200_000; i++) {
                                            final long key = random.nextInt(40);
                                            final long found = small.find(key, i);
                                            if (found != SessionTable.NONE
                                                    && found / 10 != key + 1) {
                                                wrong.set(key + " is bound to " + found);
                                            }
                                            small.bind(
                                                    key,
                                                    found,
                                                    10 * (key + 1) + random.nextInt(10),
                                                    i + 1_000,
                                                    i);
                                        }
                                    });
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertNull(wrong.get());
    }
}
