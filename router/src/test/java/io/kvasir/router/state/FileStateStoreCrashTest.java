package io.kvasir.router.state;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.snapshot.SnapshotReader;
import io.kvasir.testsupport.ChildJvm;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** A process that ends after each of the steps of a put and a delete. */
@Tag("integration") // starts JVMs
class FileStateStoreCrashTest {
    private static final List<String> FLAGS =
            List.of("-XX:TieredStopAtLevel=1", "--enable-native-access=ALL-UNNAMED");

    @TempDir private Path temp;

    @Test
    void whereverItEndsTheOldObjectOrTheNewOneIsThereAsAWhole() throws Exception {
        final Set<FileStateStore.Step> died = EnumSet.noneOf(FileStateStore.Step.class);
        boolean done = false;
        for (int last = 1; !done; last++) {
            final Path folder = temp.resolve("died-" + last);
            try (FileStateStore store = new FileStateStore(folder)) {
                assertTrue(store.lock());
                store.put(DyingPut.FIRST, out -> DyingPut.write(out, 1));
            }
            final String said =
                    ChildJvm.run(FLAGS, DyingPut.class, folder.toString(), Integer.toString(last));
            done = said.contains("done");
            for (FileStateStore.Step step : FileStateStore.Step.values()) {
                if (said.contains("died after " + step + "\n")) {
                    died.add(step);
                }
            }
            try (FileStateStore store = new FileStateStore(folder)) {
                assertTrue(store.lock(), "the lock ended with its process");
                final List<String> names = store.list();
                assertFalse(names.isEmpty(), said);
                for (String name : names) {
                    final SnapshotReader.Contents contents = scan(store, name);
                    assertEquals(List.of(), contents.problems(), said + name);
                    assertEquals(
                            name.equals(DyingPut.FIRST) ? 1 : 2,
                            contents.workers().getFirst().mark().sequence());
                }
                store.put(DyingPut.SECOND, out -> DyingPut.write(out, 3));
            }
        }
        assertEquals(EnumSet.allOf(FileStateStore.Step.class), died);
    }

    /** The check is checked: what is written in place is found torn. */
    @Test
    void anObjectThatIsWrittenInPlaceIsFoundTorn() throws Exception {
        try (FileStateStore store = new FileStateStore(temp)) {
            ChildJvm.run(FLAGS, DyingPut.class, temp.toString(), "torn");
            assertFalse(scan(store, DyingPut.SECOND).problems().isEmpty());
        }
    }

    private static SnapshotReader.Contents scan(FileStateStore store, String name)
            throws IOException {
        try (InputStream in = store.get(name, 0)) {
            assertNotNull(in);
            return SnapshotReader.scan(in);
        }
    }
}
