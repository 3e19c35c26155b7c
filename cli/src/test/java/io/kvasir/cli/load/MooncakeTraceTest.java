package io.kvasir.cli.load;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.console.CommandFailure;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

class MooncakeTraceTest {
    private static final String GOOD =
            "{\"timestamp\": 5, \"input_length\": 600, \"output_length\": 3, \"hash_ids\": [0, 7]}";

    @TempDir private Path dir;

    @Test
    void readsRequestsInOrderUpToTheLimit() throws IOException {
        final Path file = write(GOOD, "", GOOD.replace("5,", "6,").replace("7", "8"), GOOD);
        final List<MooncakeTrace.Request> requests = MooncakeTrace.read(file, 2);
        assertEquals(2, requests.size());
        assertEquals(5, requests.get(0).timestampMs());
        assertEquals(600, requests.get(0).inputLength());
        assertEquals(3, requests.get(0).outputLength());
        assertArrayEquals(new long[] {0, 8}, requests.get(1).hashIds());
    }

    @Test
    void marksOfTheByteOrderDoNotCountAlsoOfFilesPutTogether() throws IOException {
        final Path file = write("\ufeff" + GOOD, "\ufeff", "\ufeff" + GOOD);
        assertEquals(2, MooncakeTrace.read(file, 9).size());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{ | not JSON",
                "{\"timestamp\":1,\"input_length\":513,\"output_length\":1,\"hash_ids\":[1]} |"
                        + " input_length 513 needs 2 hash_ids of 512 tokens, found 1",
                "{\"timestamp\":1,\"input_length\":0,\"output_length\":1,\"hash_ids\":[]} |"
                        + " input_length is 0",
                "{\"input_length\":1,\"output_length\":1,\"hash_ids\":[1]} | timestamp is missing",
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[\"h1\"]} |"
                        + " hash_ids[0] is \"h1\"",
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[0.5]} |"
                        + " hash_ids[0] is 0.5",
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":[18446744073709551616]}"
                    + " | hash_ids[0] is 18446744073709551616",
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":5} |"
                        + " needs 1 hash_ids of 512 tokens, found 0",
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1,\"hash_ids\":{\"a\":1}} |"
                        + " needs 1 hash_ids of 512 tokens, found 0",
                "{\"timestamp\":1,\"input_length\":4294967301,\"output_length\":1,\"hash_ids\":[1]}"
                        + " | input_length is 4294967301",
                "{\"timestamp\":1,\"input_length\":6.5,\"output_length\":1,\"hash_ids\":[1]} |"
                        + " input_length is 6.5",
                "{\"timestamp\":1,\"input_length\":\"6\",\"output_length\":1,\"hash_ids\":[1]} |"
                        + " input_length is \"6\"",
                "{\"timestamp\":1,\"input_length\":1,\"output_length\":1e400,\"hash_ids\":[1]} |"
                        + " output_length is",
                "{\"timestamp\":0.75,\"input_length\":1,\"output_length\":1,\"hash_ids\":[1]} |"
                        + " timestamp is 0.75",
                "{\"timestamp\":1000000000000000000,\"input_length\":1,\"output_length\":1,"
                        + "\"hash_ids\":[1]} | timestamp is 1000000000000000000",
            })
    void aLineThatIsNoRequestIsNamed(String line, String expected) throws IOException {
        final Path file = write("", line);
        final CommandFailure failure =
                assertThrows(CommandFailure.class, () -> MooncakeTrace.read(file, 10));
        assertTrue(failure.getMessage().startsWith(file + ":2: "), failure.getMessage());
        assertTrue(failure.getMessage().contains(expected), failure.getMessage());
    }

    @Test
    void hashIdsMayHave64BitsAndNumbersAnExponent() throws IOException {
        final Path file = write(GOOD.replace("[0, 7]", "[18446744073709551615, -7]"));
        final MooncakeTrace.Request request = MooncakeTrace.read(file, 1).getFirst();
        assertArrayEquals(new long[] {-1, -7}, request.hashIds());
        final Path powers = write(GOOD.replace("600", "6e2").replace("5,", "5.0,"));
        final MooncakeTrace.Request same = MooncakeTrace.read(powers, 1).getFirst();
        assertEquals(600, same.inputLength());
        assertEquals(5, same.timestampMs());
    }

    @Test
    void timestampsOfAnotherUnitMayBeLarger() throws IOException {
        final Path file = write(GOOD.replace("5,", "1790000000000000,"));
        assertThrows(CommandFailure.class, () -> MooncakeTrace.read(file, 1));
        assertEquals(
                1_790_000_000_000_000L, MooncakeTrace.read(file, 1, 512).getFirst().timestampMs());
    }

    @Test
    void aPipeIsRefusedWhoeverWritesIt() throws Exception {
        final Path pipe = dir.resolve("trace.pipe");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        final CommandFailure failure =
                assertThrows(CommandFailure.class, () -> MooncakeTrace.read(pipe, 10));
        assertTrue(
                failure.getMessage().startsWith(pipe + " is no regular file"),
                failure.getMessage());
    }

    @Test
    void timeGoingBackwardsIsRefused() throws IOException {
        final Path file = write(GOOD, GOOD.replace("5,", "4,"));
        final CommandFailure failure =
                assertThrows(CommandFailure.class, () -> MooncakeTrace.read(file, 10));
        assertTrue(failure.getMessage().contains(":2: timestamp 4"), failure.getMessage());
    }

    private Path write(String... lines) throws IOException {
        return Files.write(dir.resolve("trace.jsonl"), List.of(lines));
    }
}
