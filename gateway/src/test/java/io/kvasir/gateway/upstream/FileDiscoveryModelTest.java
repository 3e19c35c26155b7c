package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.List;
import java.util.Random;

/**
 * A file of workers that is replaced, written in parts, broken, removed with its folder and put
 * back, always with the same time of change, while what takes the view fails now and then. Without
 * a reload, only what two looks in a row have seen counts; once it stays, the view is the file's.
 */
class FileDiscoveryModelTest {
    private static final int TRIALS = Trials.of(4, 50);
    private static final int STEPS = 40;
    private static final List<String> TEXTS =
            List.of(
                    "- http://h:1,name=a\n",
                    "- http://h:1,name=a\n- http://h:2,name=b\n",
                    "[]",
                    "- http://h:3,name=c\n",
                    "- ftp://h:1\n",
                    "workers: {");
    private static final List<List<String>> MEANINGS = // of those that have one
            List.of(List.of("a"), List.of("a", "b"), List.of(), List.of("c"));

    @TempDir private Path dir;

    @Tag("trials")
    @Test
    void theViewIsTheFilesOnceItStays() throws IOException {
        final long seed = Seeds.next("FileDiscoveryModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial), dir.resolve("d" + trial)).run();
        }
    }

    /** One run. */
    private static final class Model implements Discovery.Listener {
        private final Random random;
        private final Path folder;
        private int text; // on the disk; -1: none
        private int seen; // by the last look
        private List<String> names = List.of();
        private int views;
        private int failures;
        private int toFail; // views

        Model(Random random, Path folder) throws IOException {
            this.random = random;
            this.folder = folder;
            write(0);
        }

        private Path file() {
            return folder.resolve("workers.yaml");
        }

        void run() throws IOException {
            try (FileDiscovery discovery = new FileDiscovery(file(), "m", Duration.ofDays(1))) {
                discovery.start(this);
                assertEquals(MEANINGS.get(0), names);
                for (int step = 0; step < STEPS; step++) {
                    step(discovery);
                }
                toFail = 0;
                discovery.look(false);
                discovery.look(false);
                checkSettled(discovery);
                write(random.nextInt(MEANINGS.size()));
                discovery.look(false);
                discovery.look(false);
                checkSettled(discovery);
            }
        }

        private void checkSettled(FileDiscovery discovery) {
            if (isUsable(text)) {
                assertEquals(MEANINGS.get(text), names);
            }
            final int before = views + failures;
            discovery.look(false);
            assertEquals(before, views + failures, "said again");
        }

        private static boolean isUsable(int text) {
            return text >= 0 && text < MEANINGS.size();
        }

        private void step(FileDiscovery discovery) throws IOException {
            switch (random.nextInt(6)) {
                case 0 -> write(random.nextInt(TEXTS.size()));
                case 1 -> remove();
                case 2 -> toFail = random.nextInt(3);
                default -> look(discovery, random.nextInt(6) == 0);
            }
        }

        private void look(FileDiscovery discovery, boolean atOnce) {
            final int viewsBefore = views;
            final int failuresBefore = failures;
            discovery.look(atOnce);
            if (views > viewsBefore) {
                assertTrue(atOnce || text == seen, "of what may be half written");
                assertEquals(MEANINGS.get(text), names);
            } else if (atOnce && toFail == 0) {
                assertTrue(failures > failuresBefore || isUsable(text), "it is silent");
            }
            seen = text;
        }

        private void write(int which) throws IOException {
            Files.createDirectories(folder);
            Files.writeString(file(), TEXTS.get(which));
            Files.setLastModifiedTime(file(), FileTime.fromMillis(0));
            text = which;
        }

        private void remove() throws IOException {
            Files.deleteIfExists(file());
            if (random.nextBoolean()) {
                Files.deleteIfExists(folder);
            }
            text = -1;
        }

        @Override
        public void view(List<DiscoveredWorker> all) {
            if (toFail > 0) {
                toFail--;
                throw new OutOfMemoryError("of the test");
            }
            views++;
            names = all.stream().map(DiscoveredWorker::name).toList();
        }

        @Override
        public boolean added(DiscoveredWorker worker) {
            throw new AssertionError("a file is a view");
        }

        @Override
        public boolean removed(String name) {
            throw new AssertionError("a file is a view");
        }

        @Override
        public void draining(String name, boolean draining) {
            throw new AssertionError("a file drains nothing");
        }

        @Override
        public void failed(String cause) {
            failures++;
        }
    }
}
