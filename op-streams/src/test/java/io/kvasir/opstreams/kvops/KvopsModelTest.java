package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Random streams, written, read back, and damaged: what is read is what was written, and of a
 * damaged file each reader says so or reads it whole.
 */
class KvopsModelTest {
    private static final int STREAMS = 30;
    private static final int DAMAGES = 25;
    private static final int WORKERS = 3;

    @TempDir private Path dir;

    @Test
    void whatIsWrittenIsReadAndWhatIsDamagedIsRefused() throws IOException {
        final Random random = new Random(Seeds.next("KvopsModelTest"));
        final Path path = dir.resolve("model.kvops");
        for (int stream = 0; stream < STREAMS; stream++) {
            final Model model = new Model(random);
            model.write(path);
            assertEquals(model.lines, lines(path));
            assertEquals(model.most, LiveMaximum.of(path).pairs(), "pairs at most");
            assertEquals(model.pairs(), LiveMaximum.of(path).lastPairs(), "pairs in the end");
            final byte[] bytes = Files.readAllBytes(path);
            for (int i = 0; i < DAMAGES; i++) {
                readDamaged(Files.write(path, damaged(bytes, random)));
            }
        }
    }

    private static byte[] damaged(byte[] bytes, Random random) {
        final byte[] damaged =
                random.nextInt(4) == 0
                        ? Arrays.copyOf(bytes, random.nextInt(bytes.length + 40))
                        : bytes.clone();
        for (int i = random.nextInt(3); i >= 0 && damaged.length > 0; i--) {
            final int most = random.nextBoolean() ? damaged.length : Math.min(128, damaged.length);
            damaged[random.nextInt(most)] = (byte) random.nextInt();
        }
        return damaged;
    }

    private static void readDamaged(Path path) throws IOException {
        boolean isRefused = false;
        try {
            KvopsStream.read(path);
        } catch (KvopsFormatException e) {
            isRefused = true;
        }
        try {
            LiveMaximum.of(path);
            assertTrue(!isRefused, "one reader refuses what another reads");
        } catch (KvopsFormatException e) {
            assertTrue(isRefused, e.getMessage());
        }
    }

    private static List<String> lines(Path path) throws IOException {
        final List<String> lines = new ArrayList<>();
        try (KvopsFile file = KvopsFile.open(path)) {
            final KvopsCursor cursor = file.cursor();
            while (cursor.next()) {
                final boolean isNamed = cursor.op() == 2 || cursor.op() == 3;
                final boolean isHashed = cursor.op() == 1 || cursor.op() == 2;
                lines.add(
                        line(
                                cursor.op(),
                                cursor.hasParent(),
                                cursor.worker(),
                                cursor.request(),
                                cursor.a(),
                                cursor.timeUs(),
                                isNamed ? cursor.names() : new long[0],
                                isHashed ? cursor.localHashes() : new long[0]));
            }
        }
        return lines;
    }

    private static String line(
            int op,
            boolean hasParent,
            int worker,
            int request,
            long a,
            long timeUs,
            long[] names,
            long[] hashes) {
        return Arrays.asList(op, hasParent, worker, request, a, timeUs)
                + Arrays.toString(names)
                + Arrays.toString(hashes);
    }

    /** A stream, and what its workers hold: how many copies of each name. */
    private static final class Model {
        final List<String> lines = new ArrayList<>();
        private final Random random;
        private final boolean counted;
        private final Map<Integer, Map<Long, Integer>> held = new HashMap<>();
        private long timeUs;
        long most;

        Model(Random random) {
            this.random = random;
            counted = random.nextBoolean();
        }

        long pairs() {
            return held.values().stream().mapToLong(Map::size).sum();
        }

        void write(Path path) throws IOException {
            final long flags = counted ? KvopsHeader.COUNTED_COPIES : 0;
            try (KvopsWriter writer = new KvopsWriter(path, 16, WORKERS, 100, 1, flags)) {
                for (int i = random.nextInt(40); i > 0; i--) {
                    timeUs += random.nextInt(3);
                    write(writer, random.nextInt(WORKERS));
                }
            }
        }

        private void write(KvopsWriter writer, int worker) throws IOException {
            final Map<Long, Integer> mine = held.computeIfAbsent(worker, _ -> new HashMap<>());
            final int request = random.nextInt(10);
            switch (random.nextInt(8)) {
                case 0 -> {
                    final long[] hashes = longs();
                    writer.query(request, timeUs, 7, hashes, hashes.length);
                    add(1, false, 0, request, 7, new long[0], hashes);
                }
                case 1, 2, 3 -> store(writer, worker, request, mine);
                case 4 -> {
                    final long[] names = longs();
                    writer.removed(worker, timeUs, names, names.length);
                    add(3, false, worker, -1, 0, names, new long[0]);
                    for (long name : names) {
                        mine.computeIfPresent(name, (_, n) -> n == 1 || !counted ? null : n - 1);
                    }
                }
                case 5 -> {
                    writer.cleared(worker, timeUs);
                    add(4, false, worker, 0, 0, new long[0], new long[0]);
                    mine.clear();
                }
                case 6 -> {
                    writer.routed(worker, request, timeUs, 2, 5);
                    add(5, false, worker, request, 5L << 32 | 2, new long[0], new long[0]);
                }
                default -> {
                    writer.freed(worker, request, timeUs, 5);
                    add(7, false, worker, request, 5, new long[0], new long[0]);
                }
            }
        }

        /** A name stands for one place in a chain: the number of the block, one after the other. */
        private void store(KvopsWriter writer, int worker, int request, Map<Long, Integer> mine)
                throws IOException {
            final long first = random.nextInt(12);
            final long[] names = new long[1 + random.nextInt(4)];
            Arrays.setAll(names, i -> first + i);
            final long[] hashes = Arrays.stream(names).map(name -> 1_000 + name).toArray();
            if (first == 0) {
                writer.storedRoot(worker, request, timeUs, names, hashes, names.length);
            } else {
                writer.stored(worker, request, timeUs, first - 1, names, hashes, names.length);
            }
            add(2, first > 0, worker, request, first == 0 ? 0 : first - 1, names, hashes);
            if (first == 0 || mine.containsKey(first - 1)) {
                for (long name : names) {
                    mine.merge(name, 1, Integer::sum);
                }
                most = Math.max(most, pairs());
            }
        }

        private long[] longs() {
            return random.longs(random.nextInt(5), 0, 14).toArray();
        }

        private void add(
                int op,
                boolean hasParent,
                int worker,
                int request,
                long a,
                long[] names,
                long[] hashes) {
            lines.add(line(op, hasParent, worker, request, a, timeUs, names, hashes));
        }
    }
}
