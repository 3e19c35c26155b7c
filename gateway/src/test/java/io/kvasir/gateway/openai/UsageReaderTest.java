package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import static java.nio.charset.StandardCharsets.UTF_8;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;

class UsageReaderTest {
    private static String answer(String cached) {
        return "{\"choices\":[{\"text\":\"é, 漢 and \\\"cached_tokens\\\":9\"}],\"usage\":{"
                + "\"prompt_tokens\":128,\"prompt_tokens_details\":{\"cached_tokens\":"
                + cached
                + ",\"audio_tokens\":0},\"completion_tokens\":7}}";
    }

    @ParameterizedTest
    @CsvSource({"128, 16, '16 '", "128, 0, '0  '", "16, 48, 48", "5, 5, 5"})
    void anotherNumberOfCachedTokensTakesTheBytesOfTheFirst(
            String stated, int cached, String expected) {
        for (int offset : new int[] {0, 5}) {
            final byte[] bytes = ("#".repeat(offset) + answer(stated)).getBytes(UTF_8);
            final UsageReader reader = new UsageReader();
            assertTrue(reader.read(bytes, offset, bytes.length - offset));
            assertTrue(reader.restate(bytes, cached));
            assertEquals("#".repeat(offset) + answer(expected), new String(bytes, UTF_8));
            assertEquals(Integer.parseInt(stated), reader.cachedTokens());
            reader.read(bytes, offset, bytes.length - offset);
            assertEquals(cached, reader.cachedTokens());
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{\"usage\":{\"input_tokens\":8,\"output_tokens\":2,\"cache_creation_input_tokens\":1,\"cache_read_input_tokens\":32}}"
                    + " | 41 | 2 | 32",
                "{\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":8,\"output_tokens\":0}}}"
                    + " | 8 | 0 | -1",
                "{\"usage\":{\"input_tokens\":40,\"output_tokens\":2,\"input_tokens_details\":{"
                        + "\"cached_tokens\":32,\"cached_tokens_per_turn\":[1]}}} | 40 | 2 | 32",
                "{\"response\":{\"usage\":{\"input_tokens\":40},\"x\":[{}]},\"type\":\"t\"} | 40 |"
                        + " -1 | -1",
                "{\"response\":{\"usage\":null},\"message\":\"m\"} | -1 | -1 | -1",
                "{\"usage\":{\"cache_read_input_tokens\":2147483647,\"input_tokens\":2147483647}}"
                        + " | -1 | -1 | 2147483647",
                "{\"usage\":{\"input_tokens\":-5,\"cache_read_input_tokens\":-7}} | -5 | -1 | -7"
            })
    void usageOfOtherApisIsRead(String answer, int prompt, int output, int cached) {
        final byte[] bytes = answer.getBytes(UTF_8);
        final UsageReader reader = new UsageReader();
        assertTrue(reader.read(bytes, 0, bytes.length));
        assertEquals(prompt, reader.promptTokens());
        assertEquals(output, reader.completionTokens());
        assertEquals(cached, reader.cachedTokens());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "{\"usage\":{\"prompt_tokens\":9,\"prompt_tokens_details\":null}}",
                "{\"usage\":{\"prompt_tokens\":9}}",
                "{\"usage\":{\"prompt_tokens_details\":{\"cached_tokens\":null}}}",
                "{\"usage\":{\"prompt_tokens_details\":{\"cached_tokens\":\"16\"}}}",
                "{\"usage\":{\"prompt_tokens_details\":{\"cached_tokens\":9}}}",
                "{\"choices\":[{\"cached_tokens\":1000}]}"
            })
    void whatStatesNoneOrHasNoRoomStaysAsItIs(String answer) {
        final byte[] bytes = answer.getBytes(UTF_8);
        final UsageReader reader = new UsageReader();
        reader.read(bytes, 0, bytes.length);
        assertFalse(reader.restate(bytes, 16));
        assertArrayEquals(answer.getBytes(UTF_8), bytes);
    }

    /** Where a number stands is not known of what is decoded before it is read. */
    @Test
    void anAnswerInAnotherCodingStaysAsItIs() {
        final byte[] bytes = answer("128").getBytes(StandardCharsets.UTF_16BE);
        final byte[] before = bytes.clone();
        final UsageReader reader = new UsageReader();
        assertTrue(reader.read(bytes, 0, bytes.length));
        assertFalse(reader.restate(bytes, 16));
        assertArrayEquals(before, bytes);
    }

    @Test
    void theNumberOfAnEarlierAnswerIsForgotten() {
        final byte[] first = answer("128").getBytes(UTF_8);
        final byte[] second = "{\"usage\":{\"prompt_tokens\":9}}".getBytes(UTF_8);
        final UsageReader reader = new UsageReader();
        reader.read(first, 0, first.length);
        reader.read(second, 0, second.length);
        assertFalse(reader.restate(second, 1));
    }
}
