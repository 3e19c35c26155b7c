package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/** The roster after random registrations and removals, against a list. */
class WorkerSetTest {
    private final KvRouter maker = KvRouter.builder().maxWorkers(200).maxBlocks(64, 64).build();

    @AfterEach
    void close() {
        maker.close();
    }

    @Test
    void itIsWhatAListOfItsWorkersSays() {
        final SplittableRandom random = new SplittableRandom(Seeds.next("WorkerSetTest"));
        final List<Worker> free = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            final long taints = taints(random);
            free.add(maker.addWorker(new WorkerSpec(i, "w" + i, "http://w", 0, null, taints)));
        }
        final List<Worker> model = new ArrayList<>();
        WorkerSet roster = WorkerSet.EMPTY;
        final Map<WorkerSet, List<Worker>> former = new HashMap<>();
        for (int step = 0; step < 2_000; step++) {
            final boolean adds =
                    model.isEmpty() || (!free.isEmpty() && random.nextInt(400) < 300 - step / 8);
            final List<Worker> from = adds ? free : model;
            final Worker worker = from.remove(random.nextInt(from.size()));
            if (adds) {
                model.add(worker);
                roster = roster.with(worker);
            } else {
                free.add(worker);
                roster = roster.without(worker);
            }
            if (step % 50 == 0) {
                former.put(roster, List.copyOf(model));
                if (!free.isEmpty()) { // two are made of the same set
                    final List<Worker> more = new ArrayList<>(model);
                    more.add(free.getFirst());
                    former.put(roster.with(free.getFirst()), more);
                }
            }
            check(roster, model);
            checkTaints(roster, model, taints(random));
        }
        former.forEach(WorkerSetTest::check); // whatever was made of them later
    }

    /** Each was copied for each that came after it: 10,000 times 9,999 copies. */
    @Test
    void oneMoreOfTenThousandWorkersCopiesNoOther() {
        final int count = 10_000;
        try (KvRouter many = KvRouter.builder().maxWorkers(count).maxBlocks(64, 64).build()) {
            for (int i = 0; i < count; i++) {
                many.addWorker(WorkerSpec.of(i, "w" + i, "http://w"));
            }
            final List<Worker> workers = many.workers();
            final WorkerSet[] roster = {WorkerSet.EMPTY};
            final long bytes =
                    Allocations.bytesOf(() -> workers.forEach(w -> roster[0] = roster[0].with(w)));
            assertEquals(workers, List.of(roster[0].workers()));
            // two arrays, the set, their share of the doublings; copies would be 40,000 bytes each
            assertTrue(bytes < count * 1_000L, "bytes=" + bytes);
        }
    }

    /** Up to three. */
    private static long taints(SplittableRandom random) {
        long taints = 0;
        for (int i = random.nextInt(4); i > 0; i--) {
            taints |= 1L << random.nextInt(64);
        }
        return taints;
    }

    private static void checkTaints(WorkerSet roster, List<Worker> model, long taints) {
        final long[] tainted = new long[roster.groups()];
        for (Worker worker : model) {
            if ((worker.taints() & taints) != 0) {
                tainted[worker.slot() / 64] |= 1L << worker.slot();
            }
        }
        for (int group = 0; group < tainted.length; group++) {
            assertEquals(tainted[group], roster.tainted(taints, group));
        }
    }

    private static void check(WorkerSet roster, List<Worker> model) {
        assertArrayEquals(model.toArray(), roster.workers());
        final int end = model.stream().mapToInt(w -> w.slot() + 1).max().orElse(0);
        assertEquals(end, roster.slotEnd());
        assertEquals((end + 63) / 64, roster.groups());
        final long[] slots = new long[roster.groups()];
        for (Worker worker : model) {
            assertSame(worker, roster.at(worker.slot()));
            slots[worker.slot() / 64] |= 1L << worker.slot();
        }
        for (int group = 0; group < slots.length; group++) {
            assertEquals(slots[group], roster.slots(group));
        }
        final BitSet used = new BitSet();
        model.forEach(worker -> used.set(worker.slot()));
        for (int slot = 0; slot < 256; slot++) {
            assertEquals(used.get(slot), roster.at(slot) != null, "slot");
        }
    }
}
