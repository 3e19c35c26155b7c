package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;

/** The engine's own hit of every request must follow from the events announced before it. */
class GoldenTraceTest {
    private static final int SLOT = 3;

    @ParameterizedTest
    @CsvSource({
        "golden-vllm-0.32.0-bs32-evict, 32",
        "golden-vllm-0.32.0-bs32-burst, 32",
        "golden-sglang-0.5.23-bs16, 16",
        "golden-sglang-0.5.23-bs16-evict, 16"
    })
    void everyHitOfTheEngineIsPredicted(String trace, int blockSize) throws IOException {
        check(trace, blockSize, BlockHasher.BASE_SEED);
        check(trace, blockSize, -1);
        check(trace, blockSize, Seeds.next("GoldenTraceTest"));
    }

    private static void check(String trace, int blockSize, long seed) throws IOException {
        final Map<Integer, JsonNode> requests = requests(trace);
        final PrefixIndexConfig config = new PrefixIndexConfig(8, 4_096, 4_096);
        int checked = 0;
        int hits = 0;
        try (PrefixIndex index = new PrefixIndex(config);
                EngineStream stream =
                        new EngineStream(
                                SourceConfig.of(trace, SLOT, blockSize, "")
                                        .withRemovals(RemovalRule.PHYSICAL)
                                        .withHashSeed(seed),
                                new IndexApplier(index))) {
            final OverlapScores scores = new OverlapScores(8);
            for (ZcapRecord record : Captures.read(trace + ".zcap.gz")) {
                if (record.isEventMessage()) {
                    stream.onMessage(record.sequence(), record.payload());
                } else if (record.text().startsWith("REQ ")) {
                    final int number = Integer.parseInt(record.text().substring(4).trim());
                    final JsonNode request = requests.get(number);
                    final int predicted = predict(index, scores, request, blockSize, seed);
                    assertEquals(
                            request.get("cached_tokens").asInt(),
                            predicted,
                            trace + ": request " + number);
                    checked++;
                    hits += predicted > 0 ? 1 : 0;
                }
            }
            final SourceStatus status = stream.status();
            assertEquals(Map.of(), status.drops());
            assertEquals(0, status.unknownParents());
            assertEquals(0, status.gaps());
            assertEquals(status.lastSequence(), index.appliedSequence(SLOT));
        }
        assertEquals(requests.size(), checked);
        assertTrue(hits > 50, "a trace without hits proves nothing: hits=" + hits);
        System.out.println(trace + ": " + checked + " requests exact, " + hits + " with a hit");
    }

    private static int predict(
            PrefixIndex index, OverlapScores scores, JsonNode request, int blockSize, long seed) {
        final JsonNode prompt = request.get("prompt");
        final int[] tokens = new int[prompt.size()];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = prompt.get(i).asInt();
        }
        final int blocks = BlockHasher.blockCount(tokens.length, blockSize);
        final long[] locals = new long[blocks];
        BlockHasher.localHashes(tokens, 0, tokens.length, blockSize, seed, locals);
        index.match(locals, blocks, scores);
        return Math.min(scores.depth(SLOT), (tokens.length - 1) / blockSize) * blockSize;
    }

    private static Map<Integer, JsonNode> requests(String trace) throws IOException {
        final ObjectMapper json = new ObjectMapper();
        final Map<Integer, JsonNode> requests = new HashMap<>();
        for (String line : Captures.lines(trace + ".jsonl.gz")) {
            final JsonNode node = json.readTree(line);
            if (node.has("i")) {
                requests.put(node.get("i").asInt(), node);
            }
        }
        return requests;
    }
}
