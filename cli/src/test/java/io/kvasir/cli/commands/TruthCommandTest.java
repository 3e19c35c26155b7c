package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.Json;
import io.kvasir.pipeline.capture.ZcapReader;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** Recordings of real engines through {@code kvasir truth}, whole and damaged on purpose. */
class TruthCommandTest {
    private static final Path GOLDEN = Path.of("src/test/resources/golden");
    private static final Path EVENTS = GOLDEN.resolve("vllm-0.32.0-bs64.zcap");
    private static final Path REQUESTS = GOLDEN.resolve("vllm-0.32.0-bs64.jsonl");
    private static final int MARK = 255;

    @TempDir private Path dir;

    @ParameterizedTest
    @CsvSource({
        "vllm-0.32.0-bs64, 64, 400",
        "vllm-0.32.0-bs96, 96, 400",
        "vllm-0.33.0-lookahead-bs16, 16, 300"
    })
    void everyRequestOfARealEngineIsPredictedExactly(String name, int blockSize, int requests)
            throws IOException {
        final CommandRun run =
                truth(GOLDEN.resolve(name + ".zcap"), GOLDEN.resolve(name + ".jsonl"), blockSize);
        assertEquals(0, run.exitCode(), run.err());
        assertAllExact(requests, run);
    }

    /** SGLang uses no pair of tokens with the prompt's last one: 96 of 97 tokens are too many. */
    @Test
    void pairsOfTokensAreMatchedButForThatWithTheLastOne() throws IOException {
        final CommandRun run =
                truth(
                        GOLDEN.resolve("sglang-0.5.23-eagle-bs16.zcap"),
                        GOLDEN.resolve("sglang-0.5.23-eagle-bs16.jsonl"),
                        16);
        final JsonNode result = Json.MAPPER.readTree(run.out());
        assertEquals(299, result.get("exact").asInt(), run.out());
        assertEquals(97, result.at("/differing/0/prompt_tokens").asInt());
        assertEquals(96, result.at("/differing/0/predicted").asInt());
        assertEquals(80, result.at("/differing/0/cached_tokens").asInt());
    }

    /** With EAGLE this one computes the last block of each hit anew. */
    @Test
    void soIsEachHitWithoutItsLastBlock() throws IOException {
        final Path recorded = GOLDEN.resolve("vllm-0.32.0-eagle-bs32.zcap");
        final Path asked = GOLDEN.resolve("vllm-0.32.0-eagle-bs32.jsonl");
        final CommandRun run = truth(recorded, asked, 32, "--lacks-last-block");
        assertEquals(0, run.exitCode(), run.err());
        assertAllExact(200, run);
        final CommandRun without = truth(recorded, asked, 32);
        assertEquals(1, without.exitCode(), without.err());
        assertEquals(89, Json.MAPPER.readTree(without.out()).get("over").asInt());
    }

    /** Its hits need the blocks of the sliding window, too, which are not indexed. */
    @Test
    void ofAModelWithWindowsNothingIsPredictedTooLow() throws IOException {
        final CommandRun run =
                truth(
                        GOLDEN.resolve("vllm-0.32.0-window-bs32.zcap"),
                        GOLDEN.resolve("vllm-0.32.0-window-bs32.jsonl"),
                        32);
        assertEquals(1, run.exitCode(), run.err());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(136, json.get("exact").asInt());
        assertEquals(14, json.get("over").asInt());
        assertEquals(0, json.get("under").asInt());
        assertEquals(136, json.at("/dropped/non_main_attention_kind").asInt());
    }

    @ParameterizedTest
    @CsvSource({
        "golden-vllm-0.32.0-bs32-evict, 32, 400",
        "golden-vllm-0.32.0-bs32-burst, 32, 300",
        "golden-sglang-0.5.23-bs16, 16, 300",
        "golden-sglang-0.5.23-bs16-evict, 16, 300",
    })
    void soAreTheLargerRecordingsWherePresent(String name, int blockSize, int requests)
            throws IOException {
        final Path captures = sharedCaptures();
        final CommandRun run =
                truth(
                        captures.resolve(name + ".zcap"),
                        captures.resolve(name + ".jsonl"),
                        blockSize);
        assertEquals(0, run.exitCode(), run.out() + run.err());
        assertAllExact(requests, run);
    }

    @Test
    void aMissingMessageIsAGapAndFails() throws IOException {
        final List<ZcapRecord> records = ZcapReader.readAll(EVENTS);
        final Random random = new Random(Seeds.next("truth: missing message"));
        final int dropped = 1 + random.nextInt(messageCount(records) - 2);
        final CommandRun run = truth(withoutMessage(records, dropped), REQUESTS, 64);
        assertEquals(1, run.exitCode(), run.out());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(1, json.get("gaps").asInt());
        assertEquals(1, json.get("lost_messages").asInt());
        assertTrue(json.get("problem").asText().contains(Integer.toString(dropped)), run.out());

        final CommandRun table =
                CommandRun.of(
                        "truth",
                        withoutMessage(records, dropped).toString(),
                        REQUESTS.toString(),
                        "--block-size=64");
        assertEquals(1, table.exitCode());
        assertTrue(table.out().contains("gaps: 1, missing messages: 1"), table.out());
    }

    @Test
    void aDroppedStoreChangesTheResult() throws IOException {
        assertDropIsSeen("BlockStored", "under");
    }

    @Test
    void aDroppedRemovalChangesTheResult() throws IOException {
        assertDropIsSeen("BlockRemoved", "over");
    }

    /** Renames the first event of a kind that matters, so that its message stays in place. */
    private void assertDropIsSeen(String kind, String direction) throws IOException {
        final List<ZcapRecord> records = ZcapReader.readAll(EVENTS);
        int seen = 0;
        for (int i = 0; i < records.size() && seen == 0; i++) {
            final byte[] edited = renamed(records.get(i), kind);
            if (edited != null) {
                final List<ZcapRecord> damaged = new ArrayList<>(records);
                damaged.set(i, withPayload(records.get(i), edited));
                final CommandRun run = truth(write(damaged, r -> true), REQUESTS, 64);
                final JsonNode json = Json.MAPPER.readTree(run.out());
                assertEquals(1, json.at("/dropped/ignored_event").asInt(), run.out());
                assertEquals(0, json.get("gaps").asInt());
                if (run.exitCode() == 1) {
                    seen = json.get(direction).asInt();
                    assertTrue(seen > 0, "wrong in the expected direction: " + run.out());
                }
            }
        }
        assertTrue(seen > 0, "no single " + kind + " event of the recording matters");
    }

    @Test
    void anAlteredFigureOfTheEngineIsOneDifference() throws IOException {
        final List<String> lines = new ArrayList<>(Files.readAllLines(REQUESTS));
        final int at = indexOf(lines, line -> line.contains("\"i\": 100,"));
        final ObjectNode request = (ObjectNode) Json.MAPPER.readTree(lines.get(at));
        final int cached = request.get("cached_tokens").asInt();
        request.put("cached_tokens", cached + 64);
        lines.set(at, request.toString());
        final Path altered = Files.write(dir.resolve("altered.jsonl"), lines);
        final CommandRun run = truth(EVENTS, altered, 64);
        assertEquals(1, run.exitCode());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(399, json.get("exact").asInt());
        assertEquals(1, json.get("under").asInt());
        assertEquals(100, json.at("/differing/0/i").asInt());
        assertEquals(cached, json.at("/differing/0/predicted").asInt());
        assertEquals(cached + 64, json.at("/differing/0/cached_tokens").asInt());
    }

    @Test
    void anotherBlockSizeIsSeenInTheDrops() throws IOException {
        final CommandRun run = truth(EVENTS, REQUESTS, 32);
        assertEquals(1, run.exitCode());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertTrue(json.get("dropped").size() > 0, run.out());
        assertTrue(json.get("problem").asText().contains("64"), run.out());
    }

    @Test
    void aSetInsteadOfCopiesIsNotExact() throws IOException {
        final CommandRun run =
                CommandRun.of(
                        "truth",
                        EVENTS.toString(),
                        REQUESTS.toString(),
                        "--block-size=64",
                        "--removals=last-copy",
                        "--json");
        assertEquals(1, run.exitCode());
        assertEquals(399, Json.MAPPER.readTree(run.out()).get("exact").asInt());
    }

    @Test
    void aRecordingThatEndsEarlyHasRequestsWithoutMark() throws IOException {
        final Path cut = write(ZcapReader.readAll(EVENTS).subList(0, 300), r -> true);
        final CommandRun run = truth(cut, REQUESTS, 64);
        assertEquals(1, run.exitCode());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(0, json.get("over").asInt() + json.get("under").asInt());
        assertTrue(json.get("unmarked").asInt() > 0);
        assertEquals(400, json.get("requests").asInt() + json.get("unmarked").asInt());
    }

    @Test
    void aFileThatIsNoRecordingIsRefusedByName() {
        final CommandRun run = truth(REQUESTS, REQUESTS, 64);
        assertEquals(3, run.exitCode());
        assertTrue(run.err().contains("is no capture"), run.err());
        assertFalse(run.err().contains("    at "), run.err());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{\"i\":9000,\"prompt\":[1,\"x\"],\"cached_tokens\":0} | prompt[1] is \"x\"",
                "{\"i\":9000,\"prompt\":[4294967296],\"cached_tokens\":0} | prompt[0] is"
                        + " 4294967296",
                "{\"i\":9000,\"prompt\":[-1],\"cached_tokens\":0} | prompt[0] is -1",
                "{\"i\":9000,\"prompt\":[1.5],\"cached_tokens\":0} | prompt[0] is 1.5",
                "{\"i\":9000,\"prompt\":\"x\",\"cached_tokens\":0} | prompt is no array",
                "{\"i\":9000,\"prompt\":[1],\"cached_tokens\":-1} | cached_tokens is -1",
                "{\"i\":9000,\"prompt\":[1],\"cached_tokens\":\"0\"} | cached_tokens is \"0\"",
                "{\"i\":9000,\"prompt\":[1]} | cached_tokens is missing",
                "{\"i\":\"9000\",\"prompt\":[1],\"cached_tokens\":0} | i is \"9000\"",
                "{\"i\":4294967296,\"prompt\":[1],\"cached_tokens\":0} | i is 4294967296",
                "{\"i\":1,\"prompt\":[1],\"cached_tokens\":0} | i 1 is that of an earlier line,"
                        + " too",
            })
    void aRequestThatIsNoneIsRefusedByItsLine(String line, String expected) throws IOException {
        final List<String> lines = new ArrayList<>(Files.readAllLines(REQUESTS));
        lines.add(line);
        final Path file = Files.write(dir.resolve("requests.jsonl"), lines);
        final CommandRun run = truth(EVENTS, file, 64);
        assertEquals(3, run.exitCode(), run.out());
        assertTrue(run.err().contains(file + ":" + lines.size() + ": " + expected), run.err());
    }

    @Test
    void aPipeIsRefusedAsItsSizeIsUnknown() throws Exception {
        final Path pipe = dir.resolve("events.pipe");
        assertEquals(0, new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor());
        final Process writer =
                new ProcessBuilder(
                                "sh",
                                "-c",
                                "exec cat \"$0\" > \"$1\"",
                                EVENTS.toString(),
                                pipe.toString())
                        .start();
        try {
            final CommandRun run = truth(pipe, REQUESTS, 64);
            assertEquals(3, run.exitCode(), run.out());
            assertTrue(run.err().contains(pipe + " is no regular file"), run.err());
            assertEquals("", run.out());
        } finally {
            writer.destroyForcibly();
        }
    }

    private static CommandRun truth(Path events, Path requests, int blockSize, String... more) {
        final List<String> words = new ArrayList<>();
        words.addAll(List.of("truth", events.toString(), requests.toString()));
        words.addAll(List.of("--block-size=" + blockSize, "--json"));
        words.addAll(List.of(more));
        return CommandRun.of(words.toArray(String[]::new));
    }

    private static void assertAllExact(int requests, CommandRun run) throws IOException {
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(requests, json.get("requests").asInt());
        assertEquals(requests, json.get("exact").asInt());
        assertEquals(0, json.get("gaps").asInt());
        assertEquals(0, json.get("dropped").size(), run.out());
        assertTrue(json.get("applied").asInt() > 0);
    }

    private static Path sharedCaptures() {
        final Path root = Path.of(System.getProperty("kvasir.root"));
        final Path found =
                Stream.of("../shared/captures", "../../shared/captures")
                        .map(root::resolve)
                        .filter(Files::isDirectory)
                        .findFirst()
                        .orElse(null);
        assumeTrue(found != null, "skipped: no folder shared/captures beside the repository");
        return found;
    }

    @Test
    void aMarkOfANumberThatNoRequestCanHaveIsNamedWithItsRecord() throws IOException {
        final List<ZcapRecord> records = new ArrayList<>(ZcapReader.readAll(EVENTS));
        records.add(1, mark(List.of())); // is none
        records.add(2, mark(List.of("REQ 2147483648".getBytes(StandardCharsets.UTF_8))));
        final Path file = write(records, r -> true);
        final CommandRun run = truth(file, REQUESTS, 64);
        assertEquals(3, run.exitCode(), run.err());
        assertEquals(
                "kvasir truth: "
                        + file
                        + ": record 3: mark REQ is 2147483648, must be a whole number"
                        + " 0..2147483647",
                run.err().strip());
    }

    private static ZcapRecord mark(List<byte[]> frames) {
        return new ZcapRecord(0, ZcapRecord.Source.MARK, frames);
    }

    private static int messageCount(List<ZcapRecord> records) {
        return (int) records.stream().filter(ZcapRecord::isEventMessage).count();
    }

    private Path withoutMessage(List<ZcapRecord> records, long sequence) throws IOException {
        return write(records, r -> !r.isEventMessage() || r.sequence() != sequence);
    }

    /** The payload with its first event of that kind renamed to an unknown kind; null if none. */
    private static byte[] renamed(ZcapRecord record, String kind) {
        if (!record.isEventMessage()) {
            return null;
        }
        final String text = new String(record.payload(), StandardCharsets.ISO_8859_1);
        final int at = text.indexOf(kind);
        if (at < 0) {
            return null;
        }
        final String unknown = "X".repeat(kind.length());
        return (text.substring(0, at) + unknown + text.substring(at + kind.length()))
                .getBytes(StandardCharsets.ISO_8859_1);
    }

    private static ZcapRecord withPayload(ZcapRecord record, byte[] payload) {
        final List<byte[]> frames = new ArrayList<>(record.frames());
        frames.set(frames.size() - 1, payload);
        return new ZcapRecord(record.timeNs(), record.source(), frames);
    }

    private static int indexOf(List<String> lines, Predicate<String> wanted) {
        for (int i = 0; i < lines.size(); i++) {
            if (wanted.test(lines.get(i))) {
                return i;
            }
        }
        throw new AssertionError("no such line");
    }

    private Path write(List<ZcapRecord> records, Predicate<ZcapRecord> kept) throws IOException {
        final Path file = dir.resolve("edited.zcap");
        try (DataOutputStream out = new DataOutputStream(Files.newOutputStream(file))) {
            out.writeBytes("ZCAP0001");
            for (ZcapRecord record : records) {
                if (kept.test(record)) {
                    out.writeLong(record.timeNs());
                    out.writeByte(record.source() == ZcapRecord.Source.MARK ? MARK : 0);
                    out.writeByte(record.frames().size());
                    for (byte[] frame : record.frames()) {
                        out.writeInt(frame.length);
                        out.write(frame);
                    }
                }
            }
        }
        return file;
    }
}
