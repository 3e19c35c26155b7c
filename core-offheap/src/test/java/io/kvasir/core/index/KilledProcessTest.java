package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.ChildJvm;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/**
 * A process that applies messages is killed (SIGKILL) again and again, and the next one goes on
 * where it was: each time the index is the one that all messages up to the last committed one make.
 * With the access to memory that is shipped, and compiled code.
 */
@Tag("integration")
class KilledProcessTest {
    private static final int KILLS = 20;
    private static final int MOST_LINES = 40;

    @TempDir Path folder;

    @Test
    void afterAnyKillTheIndexIsThatOfTheMessagesThatWereCommitted() throws Exception {
        final long seed = Seeds.next("KilledProcessTest");
        final Random random = new Random(seed);
        final Path file = folder.resolve("prefixes.index");
        final SlotEvents events = KilledIndexWriter.events(seed);
        long applied = 0;
        long takenBack = 0;
        try (PrefixIndex model = new PrefixIndex(KilledIndexWriter.CONFIG)) {
            for (int kill = 0; kill < KILLS; kill++) {
                runAndKill(file, seed, 1 + random.nextInt(MOST_LINES));
                final IndexMemory memory = KilledIndexWriter.memory(file);
                assertNull(memory.discardedOrNull());
                assertTrue(memory.isReopened());
                assertTrue(memory.wasKilled());
                takenBack += memory.wordsTakenBack() > 0 ? 1 : 0;
                try (PrefixIndex index = KilledIndexWriter.index(memory)) {
                    final long messages = index.keptWord(0, KilledIndexWriter.MESSAGES);
                    assertTrue(messages > applied, "nothing was applied: " + messages);
                    for (; applied < messages; applied++) {
                        KilledIndexWriter.apply(model, events, applied);
                    }
                    IndexInvariants.check(index);
                    assertEquals(
                            IndexAnswers.of(model, events).withoutKept(),
                            IndexAnswers.of(index, events).withoutKept());
                    for (int i = 0; i < 50; i++, applied++) { // and both go on alike
                        final SlotMessage next =
                                SlotMessage.next(events, KilledIndexWriter.SLOTS, applied);
                        next.apply(model);
                        index.keptWord(0, KilledIndexWriter.MESSAGES, applied + 1);
                        next.apply(index);
                    }
                    assertEquals(
                            IndexAnswers.of(model, events).withoutKept(),
                            IndexAnswers.of(index, events).withoutKept());
                }
            }
        }
        System.out.println(
                "killed " + KILLS + " times, " + takenBack + " times in the middle of a message");
    }

    private static void runAndKill(Path file, long seed, int lines)
            throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(ChildJvm.unchecked());
        command.add("-cp");
        command.add(System.getProperty("java.class.path"));
        command.add(KilledIndexWriter.class.getName());
        command.add(file.toString());
        command.add(Long.toString(seed));
        final Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (BufferedReader out = process.inputReader()) {
            for (int i = 0; i < lines; i++) {
                assertNotNull(out.readLine(), "the writer has ended by itself");
            }
        } finally {
            process.destroyForcibly();
        }
        assertTrue(process.waitFor(1, TimeUnit.MINUTES));
    }
}
