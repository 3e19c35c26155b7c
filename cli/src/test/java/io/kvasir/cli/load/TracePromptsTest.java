package io.kvasir.cli.load;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

class TracePromptsTest {
    private final TracePrompts prompts = new TracePrompts("a \"model\"", 256);

    @Test
    void equalHashIdsGiveEqualTokensAndDifferentOnesDifferentTokens() {
        final int[] first = prompts.tokens(request(1_100, 0, 5, 9));
        final int[] second = prompts.tokens(request(1_500, 0, 5, 10));
        assertArrayEquals(Arrays.copyOf(first, 1_024), Arrays.copyOf(second, 1_024));
        assertFalse(Arrays.equals(first, 1_024, 1_040, second, 1_024, 1_040));
        assertEquals(1_100, first.length);
    }

    @Test
    void thousandsOfHashIdsGiveNoTwoEqualBlocks() {
        final Set<String> blocks = new HashSet<>();
        for (int id = 0; id < 5_000; id++) {
            final int[] tokens = prompts.tokens(request(16, id));
            assertTrue(blocks.add(Arrays.toString(tokens)), "hash id " + id);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 10, 256, 32_000, 65_536})
    void theBodyIsJsonWithTheSameTokens(int vocabulary) throws IOException {
        final TracePrompts wide = new TracePrompts("a \"model\"", vocabulary);
        final MooncakeTrace.Request request = request(20_000, ids(40));
        final JsonNode body = Json.MAPPER.readTree(wide.body(request, 17));
        assertEquals("a \"model\"", body.get("model").asText());
        assertEquals(17, body.get("max_tokens").asInt());
        assertTrue(body.get("stream").asBoolean());
        assertTrue(body.at("/stream_options/include_usage").asBoolean());
        final int[] tokens = wide.tokens(request);
        assertEquals(tokens.length, body.get("prompt").size());
        for (int i = 0; i < tokens.length; i++) {
            assertEquals(tokens[i], body.get("prompt").get(i).asInt());
            assertTrue(tokens[i] >= 0 && tokens[i] < vocabulary);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 65_537})
    void aVocabularyOutsideItsBoundsIsRefused(int vocabulary) {
        final CommandFailure failure =
                assertThrows(CommandFailure.class, () -> new TracePrompts("m", vocabulary));
        assertTrue(failure.getMessage().contains("--vocabulary " + vocabulary));
    }

    private static MooncakeTrace.Request request(int length, long... hashIds) {
        return new MooncakeTrace.Request(0, length, 1, hashIds);
    }

    private static long[] ids(int count) {
        final long[] ids = new long[count];
        Arrays.setAll(ids, i -> 100L + i);
        return ids;
    }
}
