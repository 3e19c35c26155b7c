package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.snapshot.SnapshotReader;
import io.kvasir.pipeline.snapshot.WorkerSection;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.StreamStart;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.MemoryStateStore;
import io.kvasir.router.state.WorkerSnapshots;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Routers one after the other over a store that fails in any step and whose objects are damaged,
 * with workers that come and go and engines that restart. A worker gets what the newest whole
 * snapshot has of it and nothing else, and what is called exact is.
 */
class SavedPrefixesModelTest {
    private static final int TRIALS = 5;
    private static final int STEPS = 80;
    private static final int WORKERS = 4;
    private static final int SLOTS = WORKERS + 1;
    private static final int BLOCK = 16;
    private static final int NAMES = 12;
    private static final long HOUR_MS = WorkerSnapshots.FOLLOWED.toMillis();

    @Test
    void aWorkerGetsWhatTheNewestWholeSnapshotHasOfIt() throws Exception {
        final long seed = Seeds.next("SavedPrefixesModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            try (Model model = new Model(new Random(seed + trial))) {
                model.run();
            } catch (Exception | AssertionError e) {
                throw new AssertionError("seed=" + (seed + trial) + ": " + e.getMessage(), e);
            }
        }
    }

    /** What a snapshot has of a worker. */
    private record Saved(Set<Long> held, long number, long followedMs) {}

    /** An engine, whether a router follows it or not. */
    private static final class Engine {
        private int life;
        private final List<byte[]> messages = new ArrayList<>();
        private final Set<Integer> cache = new TreeSet<>();
    }

    /** A worker of the router of now. */
    private static final class Follow {
        private final Worker worker;
        private EngineStream stream;

        Follow(Worker worker) {
            this.worker = worker;
        }
    }

    /** A store that fails when it is to. */
    private static final class FaultyStore extends MemoryStateStore {
        private final Model model;

        FaultyStore(Model model) {
            super(model.memory);
            this.model = model;
        }

        @Override
        public void put(String name, Content content) throws IOException {
            final int fault = model.fault();
            if (fault == 1) {
                throw new IOException("before a put");
            }
            if (fault == 2) {
                final int most = model.random.nextInt(600);
                super.put(name, out -> content.writeTo(new Cut(out, most)));
                model.put(name); // it was short enough
                return;
            }
            super.put(name, content);
            model.put(name);
            if (fault == 3) {
                throw new IOException("after a put");
            }
        }

        @Override
        public void delete(String name) {
            if (model.fault() == 4) {
                throw new IllegalStateException("a delete");
            }
            super.delete(name);
            model.objects.remove(name);
        }
    }

    /** Fails after some bytes. */
    private static final class Cut extends FilterOutputStream {
        private int left;

        Cut(OutputStream out, int most) {
            super(out);
            left = most;
        }

        @Override
        public void write(int b) throws IOException {
            if (left-- <= 0) {
                throw new IOException("the disk is full");
            }
            out.write(b);
        }
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final MemoryStateStore.Memory memory = new MemoryStateStore.Memory();
        private final TreeMap<String, Map<Integer, Saved>> objects = new TreeMap<>();
        private final Engine[] engines = new Engine[WORKERS];
        private final Map<Integer, Follow> following = new HashMap<>();
        private final Map<Integer, Saved> found = new HashMap<>(); // not come again
        private final Map<Integer, Set<Long>> live = new HashMap<>(); // as of the save of now
        private final Map<Integer, List<Saved>> former = new HashMap<>(); // all, whatever of them
        private long nowMs = 1_700_000_000_000L;
        private boolean faulty;
        private boolean isWhole = true; // no object was ever damaged
        private KvRouter router;
        private SavedPrefixes saved;

        Model(Random random) throws IOException {
            this.random = random;
            for (int i = 0; i < WORKERS; i++) {
                engines[i] = new Engine();
                former.put(i, new ArrayList<>());
            }
            start();
        }

        int fault() {
            return faulty ? random.nextInt(12) : 0;
        }

        private void start() throws IOException {
            router =
                    KvRouter.builder()
                            .blockSize(BLOCK)
                            .maxWorkers(SLOTS)
                            .maxBlocks(1_024, 1_024)
                            .set(RouterSettings.HASH_SEED, 7L)
                            .build();
            saved = new SavedPrefixes(new FaultyStore(this), BLOCK, SLOTS, 7L, 7L);
            found.clear();
            for (Map<Integer, Saved> object : objects.descendingMap().values()) {
                object.forEach(found::putIfAbsent);
            }
        }

        @Override
        public void close() {
            saved.close();
            router.close();
        }

        void run() throws Exception {
            for (int step = 0; step < STEPS; step++) {
                final int i = random.nextInt(WORKERS);
                switch (random.nextInt(24)) {
                    case 0, 1 -> come(i);
                    case 2 -> leave(i);
                    case 3, 4, 5 -> save();
                    case 6 -> {
                        close();
                        following.clear();
                        if (random.nextInt(4) == 0) {
                            damage();
                        }
                        start();
                    }
                    case 7 -> restart(i);
                    case 8 ->
                            nowMs +=
                                    random.nextInt(4) == 0
                                            ? random.nextLong(HOUR_MS)
                                            : random.nextLong(60_000);
                    default -> publish(i);
                }
            }
            faulty = false;
            for (int i = 0; i < WORKERS; i++) {
                come(i);
            }
        }

        private void restart(int i) {
            final Follow follow = following.get(i);
            if (follow != null) {
                follow.stream.onDisconnected("reset");
                follow.stream.onConnected();
            }
            final Engine engine = engines[i];
            engine.life++;
            engine.messages.clear();
            engine.cache.clear();
        }

        /** An engine says something, which arrives where it is followed, or is lost. */
        private void publish(int i) {
            final Engine engine = engines[i];
            final int name = 1 + random.nextInt(NAMES);
            final long first = engine.life * 1_000L + name;
            if (engine.cache.remove(name)) {
                engine.messages.add(EngineMessages.removed(1, first - 1));
            } else {
                engine.cache.add(name);
                final int[] tokens = new int[BLOCK];
                tokens[0] = name;
                tokens[1] = engine.messages.size();
                engine.messages.add(EngineMessages.stored(tokens, 1, BLOCK, first - 1));
            }
            final Follow follow = following.get(i);
            if (follow != null && random.nextInt(12) > 0) {
                deliver(i, follow, engine.messages.size() - 1);
            }
        }

        private void deliver(int i, Follow follow, int number) {
            follow.stream.onMessage(number, engines[i].messages.get(number));
            settle();
            if (follow.worker.state() == IndexState.EXACT) {
                assertEquals(truth(i), held(follow.worker), "EXACT: " + follow.worker);
            }
        }

        private Set<Long> truth(int i) {
            final Set<Long> names = new TreeSet<>();
            engines[i].cache.forEach(name -> names.add(engines[i].life * 1_000L + name));
            return names;
        }

        private void settle() {
            Eventually.holds("it is applied", () -> router.indexPipeline().backlog() == 0);
        }

        private Set<Long> held(Worker worker) {
            final Set<Long> names = new TreeSet<>();
            try {
                router.indexPipeline()
                        .visitRuns(
                                worker.slot(),
                                0,
                                1 << 12,
                                (depth, parent, engine, local, count) -> {
                                    for (int at = 0; at < count; at++) {
                                        names.add(engine[at]);
                                    }
                                });
            } catch (Exception e) {
                throw new AssertionError(e);
            }
            return names;
        }

        private String name(int i) {
            return "w" + i / 2;
        }

        private void come(int i) {
            if (following.containsKey(i)) {
                return;
            }
            final Worker worker =
                    router.addWorker(
                            new WorkerSpec(
                                    i,
                                    name(i),
                                    "http://w",
                                    i % 2,
                                    SourceConfig.of(name(i), 0, BLOCK, "tcp://127.0.0.1:1")));
            final StreamStart start =
                    saved.restore(
                            new WorkerRegistry.NamedRank(name(i), i % 2),
                            worker.slot(),
                            router.indexPipeline(),
                            router.index());
            settle();
            final Follow follow = new Follow(worker);
            following.put(i, follow);
            final Saved last = found.remove(i);
            final Saved expected = isThere(i, last) ? last : null;
            final Set<Long> held = held(worker);
            if (start == null) {
                assertEquals(Set.of(), held);
            } else if (!isWhole) {
                assertTrue(
                        former.get(i).stream()
                                .anyMatch(
                                        one ->
                                                one.number == start.sequence()
                                                        && one.held.equals(held)),
                        () -> "never was: " + i + " at " + start.sequence() + " " + held);
            }
            if (isWhole) {
                assertEquals(expected == null, start == null, "of " + i);
                assertEquals(expected == null ? Set.of() : expected.held, held, "blocks of " + i);
                assertTrue(start == null || expected.number == start.sequence(), "message of " + i);
            }
            follow.stream = router.openDirect(worker, EngineMessages.source(name(i), BLOCK), start);
            if (random.nextBoolean()) {
                catchUp(i, follow, start == null ? 0 : (int) start.sequence() + 1);
            }
        }

        /** Not where it was too old to be copied, and what it was in is deleted. */
        private boolean isThere(int i, Saved one) {
            return one != null
                    && objects.values().stream().anyMatch(each -> one.equals(each.get(i)));
        }

        /** All that the engine has said since comes. */
        private void catchUp(int i, Follow follow, int from) {
            if (from > engines[i].messages.size()) {
                return; // another life, which is not as far
            }
            for (int n = from; n < engines[i].messages.size(); n++) {
                follow.stream.onMessage(n, engines[i].messages.get(n));
            }
            settle();
        }

        private void leave(int i) {
            final Follow there = following.remove(i);
            if (there != null) {
                router.removeWorker(there.worker);
            }
        }

        private void save() {
            faulty = random.nextBoolean();
            nowMs += 1 + random.nextInt(60_000);
            live.clear();
            following.forEach((i, follow) -> live.put(i, held(follow.worker)));
            try {
                saved.save(router.workers(), router.indexPipeline(), null, nowMs);
            } catch (IOException | IllegalStateException e) {
                assertTrue(faulty, e::toString);
            }
            faulty = false;
        }

        /** An object is in the store. */
        void put(String name) throws IOException {
            final Map<Integer, Saved> has = new HashMap<>();
            for (WorkerSection section : scan(name).workers()) {
                final int i = 2 * (section.name().charAt(1) - '0') + section.dpRank();
                final long number = section.mark().sequence();
                if (following.containsKey(i)) {
                    has.put(i, new Saved(live.get(i), number, nowMs));
                } else if (isWhole) {
                    assertEquals(found.get(i).number, number, "copy of " + i);
                    has.put(i, found.get(i));
                } else {
                    former.get(i).stream()
                            .filter(one -> one.number == number)
                            .forEach(one -> has.putIfAbsent(i, one));
                }
            }
            has.forEach((i, one) -> former.get(i).add(one));
            objects.put(name, has);
            following.forEach(
                    (i, follow) ->
                            assertTrue(
                                    follow.worker.state() != IndexState.EXACT || has.containsKey(i),
                                    "not saved: " + i));
            found.forEach(
                    (i, old) ->
                            assertTrue(
                                    !isWhole
                                            || nowMs - old.followedMs >= HOUR_MS
                                            || has.containsKey(i),
                                    "not copied: " + i));
        }

        private SnapshotReader.Contents scan(String name) throws IOException {
            try (InputStream in = new MemoryStateStore(memory).get(name, 0)) {
                return SnapshotReader.scan(in);
            }
        }

        /** Some bytes of an object are others, or missing. */
        private void damage() throws IOException {
            try (MemoryStateStore store = new MemoryStateStore(memory)) {
                if (objects.isEmpty() || !store.lock()) {
                    return;
                }
                final List<String> names = List.copyOf(objects.keySet());
                final String name = names.get(random.nextInt(names.size()));
                final byte[] bytes = store.get(name, 0).readAllBytes();
                final int at = random.nextInt(bytes.length);
                bytes[at] ^= (byte) (1 << random.nextInt(8));
                final int length = random.nextBoolean() ? bytes.length : at;
                store.put(name, out -> out.write(bytes, 0, length));
            }
            isWhole = false;
        }
    }
}
