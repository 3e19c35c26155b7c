package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** From a trace to a stream to measured figures, through the command line. */
@Order(0) // takes longest: begins before all others
class BenchCommandTest {
    private static final long LIMIT_SECONDS = 60; // of what takes milliseconds
    private static final int FIRST_CHECKSUM = 128 + 16; // the first record is a query

    private static final Pattern HIT_RATE =
            Pattern.compile("hit rate 0\\.\\d+ asked for, 0\\.\\d{4} reached");

    @TempDir private Path dir;

    private Path stream() throws IOException {
        final StringBuilder trace = new StringBuilder();
        for (int i = 0; i < 30; i++) {
            trace.append("{\"timestamp\": ").append(i * 50);
            trace.append(", \"input_length\": 1000, \"output_length\": 40, \"hash_ids\": [");
            trace.append(i % 3).append(", ").append(10 + i % 6).append("]}\n");
        }
        final Path file = Files.writeString(dir.resolve("trace.jsonl"), trace);
        final Path out = dir.resolve("small.kvops");
        final CommandRun run =
                CommandRun.of(
                        "bench",
                        "generate",
                        "--trace=" + file,
                        "--out=" + out,
                        "--workers=4",
                        "--capacity=150");
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(run.out().contains("30 queries of 1860 blocks"), run.out());
        return out;
    }

    @Test
    void aStreamMadeFromATraceIsMeasuredInAFreshJvm() throws IOException {
        final CommandRun run =
                CommandRun.of(
                        "bench",
                        "kvops",
                        stream().toString(),
                        "--forks=1",
                        "--warm-up-seconds=0",
                        "--json");
        assertEquals(0, run.exitCode(), run.err());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        for (String field :
                List.of(
                        "apply_ns_per_block",
                        "query_mean_us",
                        "query_p50_us",
                        "query_p99_us",
                        "query_p999_us",
                        "query_p9999_us",
                        "bytes_per_pair",
                        "held_pairs",
                        "bytes")) {
            assertTrue(json.path(field).asDouble(-1) > 0, field + " in " + json);
            assertEquals(2, json.path("spread").path(field).size(), field);
        }
        assertEquals(0, json.path("checksum_mismatches").asInt(-1));
        assertEquals(0, json.path("refused_stores").asInt(-1));
        assertEquals(1, json.path("forks").asInt());
        assertEquals(30, json.path("queries").asInt());
        assertEquals("kvasir", json.path("index").asText());
        assertEquals("inorder", json.path("mode").asText());
        assertEquals("small.kvops", json.path("stream").asText());
        assertTrue(json.path("warm_up").asText().contains("whole stream"), run.out());
    }

    @Test
    void wrongAnswersEndWithExitCodeOne() throws IOException {
        final Path stream = stream();
        final ByteBuffer bytes =
                ByteBuffer.wrap(Files.readAllBytes(stream)).order(ByteOrder.LITTLE_ENDIAN);
        bytes.putLong(FIRST_CHECKSUM, 1);
        Files.write(stream, bytes.array());
        final CommandRun run =
                CommandRun.of("bench", "kvops", stream.toString(), "--forks=0", "--warm-up=0");
        assertEquals(1, run.exitCode(), run.err());
        assertTrue(run.out().contains("WRONG ANSWERS: 1"), run.out());
        assertTrue(run.out().contains("checksum_mismatches"), run.out());
        assertTrue(run.out().lines().anyMatch(l -> l.matches("query_mean_us +us +[0-9,.]+ .*")));
        assertTrue(run.out().contains("query_p999_us *"), run.out()); // 30 queries
        assertTrue(run.out().contains("* of too few"), run.out());
    }

    @Tag("integration") // starts JVMs
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "beside --passes 1 | query_p9999_us",
                "beside --passes 1 --depth 8 --block-rate 1e6 | query_p9999_us",
                "openloop --speed-up 100 | drain_ms",
                "events --passes 1 --limit-seconds 5 | event_max_us"
            })
    void theOtherModesAreMeasuredToo(String mode, String figure) throws IOException {
        final String line =
                "bench kvops "
                        + stream()
                        + " --forks 0 --warm-up 100 --warm-up-seconds 0 --json --mode "
                        + mode;
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(Json.MAPPER.readTree(run.out()).path(figure).isNumber(), run.out());
    }

    @Tag("integration") // starts JVMs
    @Test
    void conversationsAndSituationsAreWrittenToo() throws IOException {
        final Path out = dir.resolve("mt.kvops");
        final String line =
                "bench generate --multi-turn --requests 200 --turns 3 --system-prompts 2"
                        + " --system-blocks 10 --prompt-blocks 60 --answer-blocks 4 --rate 4"
                        + " --workers 3 --hit-rate 0.5 --out "
                        + out;
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(0, run.exitCode(), run.err());
        assertTrue(run.out().contains("200 queries of "), run.out());
        assertTrue(run.out().contains("conversations of 3.0 turns"), run.out());
        final CommandRun replayed =
                CommandRun.of("bench", "kvops", out.toString(), "--forks=0", "--warm-up=0");
        assertEquals(0, replayed.exitCode(), replayed.err());

        final Path cliff = dir.resolve("cliff.kvops");
        final CommandRun situation =
                CommandRun.of(
                        "bench",
                        "generate",
                        "--cliff=branch-churn",
                        "--scale=0.1",
                        "--out=" + cliff);
        assertEquals(0, situation.exitCode(), situation.err());
        assertTrue(Files.size(cliff) > 0);
    }

    @Test
    void aStreamThatFailsOnItsWayLeavesTheFilesAsTheyWere() throws IOException {
        final Path out = stream();
        final byte[] before = Files.readAllBytes(out);
        final List<String> files = names();
        for (Path target : new Path[] {out, dir.resolve("new.kvops")}) {
            final CommandRun run =
                    CommandRun.of(
                            "bench",
                            "generate",
                            "--trace=" + dir.resolve("trace.jsonl"),
                            "--out=" + target,
                            "--speedup=1e-15");
            assertNotEquals(0, run.exitCode());
            assertTrue(run.err().contains("2^53 us"), run.err());
            assertEquals(files, names());
        }
        assertArrayEquals(before, Files.readAllBytes(out));
    }

    @Test
    void aStreamIsNotWrittenOverItsTrace() throws IOException {
        stream();
        final Path trace = dir.resolve("trace.jsonl");
        final byte[] before = Files.readAllBytes(trace);
        final Path other = dir.resolve("other").resolve("..").resolve("trace.jsonl");
        Files.createDirectory(dir.resolve("other"));
        for (Path target : new Path[] {trace, other}) {
            final CommandRun run =
                    CommandRun.of("bench", "generate", "--trace=" + trace, "--out=" + target);
            assertEquals(2, run.exitCode(), run.err());
            assertTrue(
                    run.err().contains("--out " + target + " is the file of --trace"), run.err());
        }
        assertArrayEquals(before, Files.readAllBytes(trace));
    }

    private List<String> names() throws IOException {
        try (Stream<Path> files = Files.list(dir)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    private CommandRun conversations(String options) {
        final String line =
                "bench generate --multi-turn --requests 200 --system-prompts 2 --system-blocks 10"
                        + " --prompt-blocks 60 --answer-blocks 4 --workers 3 --out "
                        + dir.resolve("hits.kvops")
                        + options;
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(0, run.exitCode(), run.err());
        return run;
    }

    @Test
    void theHitRateThatWasReachedIsSaid() {
        final CommandRun near = conversations(" --turns 3 --hit-rate 0.5");
        assertTrue(near.out().lines().anyMatch(HIT_RATE.asMatchPredicate()), near.out());
        assertEquals("", near.err());
        assertFalse(conversations(" --turns 3").out().contains("hit rate"));
    }

    @Test
    void aHitRateThatWasNotReachedIsAWarning() {
        final CommandRun run = conversations(" --turns 2 --hit-rate 0.95");
        assertTrue(run.out().lines().anyMatch(HIT_RATE.asMatchPredicate()), run.out());
        final List<String> lines = run.err().lines().toList();
        assertEquals(1, lines.size(), run.err());
        assertTrue(lines.getFirst().startsWith("warning: --hit-rate 0.95 was not reached: 0."));
        assertTrue(lines.getFirst().contains("--turns"), run.err());
    }

    @Test
    void eachSituationIsARowWithItsLongestEvent() throws IOException {
        final String line =
                "bench cliffs unknown-flood big-worker --scale 0.002 --forks 0 --passes 1"
                        + " --warm-up-seconds 0";
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(0, run.exitCode(), run.err());
        final List<String> lines = run.out().lines().toList();
        assertTrue(lines.getFirst().contains("p99.99 us"), run.out());
        assertTrue(lines.get(2).startsWith("unknown-flood "), run.out());
        assertTrue(lines.get(3).startsWith("big-worker "), run.out());

        final CommandRun json = CommandRun.of((line + " --json").split(" ", -1));
        final JsonNode first = Json.MAPPER.readTree(json.out()).path("cliffs").path(0);
        assertTrue(first.path("event_max_us").asDouble(-1) > 0, json.out());
        assertTrue(first.path("event_share_over_bound").isNumber(), json.out());
    }

    @ParameterizedTest
    @ValueSource(strings = {"--mode=beside", "--mode=openloop --speed-up=1000", "--room=0.5"})
    void answersThatWereNotCheckedHaveNoNumberOfWrongOnes(String unchecked) throws IOException {
        final String stream = stream().toString();
        final CommandRun json = kvops(stream, unchecked + " --json");
        assertEquals(0, json.exitCode(), json.err());
        final JsonNode root = Json.MAPPER.readTree(json.out());
        assertTrue(root.path("checksum_mismatches").isNull(), json.out());
        assertFalse(root.path("spread").has("checksum_mismatches"), json.out());
        final CommandRun text = kvops(stream, unchecked);
        assertTrue(
                text.out().lines().anyMatch(l -> l.matches("checksum_mismatches .* - +- +-\\s*")),
                text.out());
    }

    @Test
    void modeEventsChecksAnswers() throws IOException {
        final CommandRun run = kvops(stream().toString(), "--mode=events --json");
        assertEquals(0, Json.MAPPER.readTree(run.out()).path("checksum_mismatches").asInt(-1));
        final CommandRun help = CommandRun.of("bench", "kvops", "--help");
        assertTrue(
                help.out().replaceAll("\\s+", " ").contains("modes inorder and events check them"),
                help.out());
    }

    private static CommandRun kvops(String stream, String options) {
        final String line = "bench kvops " + stream + " --forks 0 --warm-up-seconds 0 " + options;
        return CommandRun.of(line.split(" ", -1));
    }

    @Tag("integration") // starts JVMs
    @Test
    void whatMeasuresEndsWithItsParentAndLeavesNoStream() throws Exception {
        final Path temporary = Files.createDirectory(dir.resolve("tmp"));
        try (KvasirProcess process = endless(temporary)) {
            final ProcessHandle child = process.child();
            try {
                assertEquals(143, process.terminate());
                awaitEnd(child);
            } finally {
                var _ = child.destroyForcibly();
            }
        }
        try (Stream<Path> left = Files.list(temporary)) {
            assertEquals(List.of(), left.toList());
        }
    }

    @Tag("integration") // starts JVMs
    @Test
    void whatMeasuresEndsWithAParentThatIsKilled() throws Exception {
        try (KvasirProcess process = endless(dir)) {
            final ProcessHandle child = process.child();
            try {
                process.kill();
                awaitEnd(child);
            } finally {
                var _ = child.destroyForcibly();
            }
        }
    }

    private static void awaitEnd(ProcessHandle child) throws Exception {
        assertFalse(child.onExit().get(LIMIT_SECONDS, TimeUnit.SECONDS).isAlive());
    }

    private static KvasirProcess endless(Path temporary) throws IOException {
        final String line =
                "bench cliffs unknown-flood --scale 0.002 --passes 1000000000 --limit-seconds 0"
                        + " --warm-up-seconds 0";
        return new KvasirProcess(List.of("-Djava.io.tmpdir=" + temporary), line.split(" ", -1));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "bench | 2 | no command given",
                "bench cliffs nonesuch | 2 | no situation is named nonesuch; there are index-limit",
                "bench cliffs --scale 2 | 2 | --scale 2.0 is not within 0..1",
                "bench cliffs --room 0 | 2 | room is positive",
                "bench kvops no.kvops | 3 | FILE no.kvops: there is no such file",
                "bench kvops pom.xml | 3 | no KVOPS v1 stream: offset 0: the magic",
                "bench kvops x --index nonesuch | 2 | no index is named nonesuch; there are kvasir",
                "bench kvops x --forks -1 | 2 | --forks -1 is negative",
                "bench kvops x --mode sideways | 2 | sideways",
                "bench generate --out x | 2 | one of --trace FILE, --multi-turn and --cliff NAME",
                "bench generate --multi-turn --trace x --out x | 2 | one of --trace FILE",
                "bench generate --multi-turn --hit-rate 1 --out x | 2 | --hit-rate 1.0 is not",
                "bench generate --multi-turn --prompt-blocks 9 --out x | 2 | --prompt-blocks out"
                        + " of",
                "bench generate --cliff nonesuch --out x | 2 | no situation is named nonesuch",
                "bench generate --cliff big-worker --scale 7 --out x | 2 | --scale out of range",
                "bench generate --trace no.jsonl --out x | 3 | --trace no.jsonl: there is",
                "bench generate --trace x --out y --workers 0 | 2 | --workers out of range:"
                        + " value=0",
                "bench generate --trace x --out y --trace-block 40 | 2 | a multiple of block 16"
            })
    void whatCannotBeDoneIsSaidInOneLine(String line, int exitCode, String words) {
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(exitCode, run.exitCode(), run.err());
        assertTrue(run.err().contains(words), run.err());
    }
}
