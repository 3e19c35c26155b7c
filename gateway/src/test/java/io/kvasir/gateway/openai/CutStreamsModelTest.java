package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.eclipse.jetty.util.BufferUtil;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Random;

/**
 * Streams of events, well formed or not, that come cut at any byte: what is passed on and what is
 * read of them is what it would be of the same bytes at once, and of one event at a time.
 */
class CutStreamsModelTest {
    private static final int TRIALS = Trials.of(150, 3_000);
    private static final List<InferenceRequest.Form> FORMS =
            List.of(InferenceRequest.Form.values());
    private static final String[] CHOICES = {
        "{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}",
        "{\"index\":0,\"delta\":{\"content\":\"ä🙂\"}}",
        "{\"index\":0,\"text\":\"\\\"usage\\\":\",\"logprobs\":null}",
        "{\"index\":0,\"text\":\"t\",\"finish_reason\":\"stop\"}",
        "{\"index\":1,\"delta\":{\"tool_calls\":[{\"x\":1}]}}",
        "{}",
        "null",
        "7",
        ""
    };
    private static final String[] USAGES = {
        "",
        "",
        ",\"usage\":null",
        ",\"usage\":{\"prompt_tokens\":40,\"completion_tokens\":2}",
        ",\"usage\":{\"prompt_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":128}}",
        ",\"usage\":{\"prompt_tokens_details\":{\"cached_tokens\":1}}",
        ",\"usage\":{\"completion_tokens\":99999999999}",
        ",\"usage\":[{}]"
    };
    private static final String[] OTHERS = {
        ": ping",
        ":",
        "event: x",
        "data",
        "data: ",
        "data:[DONE]",
        "data: [DONE]  ",
        "data: {\"error\":{\"code\":503,\"message\":\"m\"}}",
        "data: {\"error\":null}",
        "data: not json",
        "data: {\"choices\":[",
        "data: {\"type\":\"content_block_delta\",\"usage\":{\"input_tokens\":4}}",
        "event: response.output_text.delta\n"
                + "data: {\"delta\":\"a\",\"type\":\"response.output_text.delta\"}",
        "data: {\"type\":\"message_stop\"}",
        "data: {\"response\":{\"usage\":{\"input_tokens\":7}},\"type\":\"response.completed\"}",
        "data: {\"type\":\"error\",\"error\":{\"code\":503}}",
        "data: a\r\ndata: b",
        "\r",
        "id: 1\ndata: {\"choices\":[{\"text\":\"b\"}]}",
        "retry: 5"
    };

    /** What came of a stream. */
    private record Seen(
            String passed,
            boolean firstToken,
            boolean done,
            int errorStatus,
            int outputTokens,
            int outputEvents,
            List<Integer> usage) {}

    private static String line(Random random) {
        return random.nextInt(3) == 0
                ? OTHERS[random.nextInt(OTHERS.length)]
                : "data:"
                        + " ".repeat(random.nextInt(3))
                        + "{\"id\":\"c\",\"choices\":["
                        + CHOICES[random.nextInt(CHOICES.length)]
                        + "]"
                        + USAGES[random.nextInt(USAGES.length)]
                        + "}"
                        + " ".repeat(random.nextInt(2));
    }

    private static String stream(Random random) {
        final StringBuilder stream = new StringBuilder();
        for (int i = random.nextInt(8); i >= 0; i--) {
            final String end = random.nextInt(3) == 0 ? "\r\n" : "\n";
            stream.append(line(random)).append(end);
            stream.append(random.nextInt(8) == 0 ? "" : random.nextInt(9) == 0 ? end + end : end);
        }
        if (random.nextInt(4) == 0) {
            stream.setLength(random.nextInt(stream.length() + 1));
        }
        return stream.toString();
    }

    /** Passes a stream in parts of random lengths; {@code most} bytes each, at the most. */
    private static Seen seen(
            InferenceRequest.Form form,
            byte[] bytes,
            int most,
            boolean dropUsage,
            int cached,
            Random random) {
        final SseStream stream = new SseStream(form, dropUsage, () -> cached);
        final ByteArrayOutputStream passed = new ByteArrayOutputStream();
        for (int from = 0; from < bytes.length; ) {
            final int to = from + Math.min(bytes.length - from, 1 + random.nextInt(most));
            stream.accept(ByteBuffer.wrap(Arrays.copyOfRange(bytes, from, to)));
            from = to;
            if (random.nextInt(3) > 0) {
                final int ready = stream.readyBytes();
                final ByteBuffer taken = stream.takeReady();
                assertEquals(ready, taken.remaining());
                passed.writeBytes(BufferUtil.toArray(taken));
                assertEquals(0, stream.readyBytes());
            }
        }
        passed.writeBytes(BufferUtil.toArray(stream.takeAll()));
        return new Seen(
                passed.toString(UTF_8),
                stream.sawFirstToken(),
                stream.sawDone(),
                stream.errorStatus(),
                stream.outputTokens(),
                stream.outputEvents(),
                List.of(
                        stream.usage().promptTokens(),
                        stream.usage().completionTokens(),
                        stream.usage().cachedTokens()));
    }

    @Tag("trials")
    @Test
    void aStreamIsTheSameHoweverItIsCut() {
        final long seed = Seeds.next("CutStreamsModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final Random random = new Random(seed + trial);
            final String text = stream(random);
            final byte[] bytes = text.getBytes(UTF_8);
            final InferenceRequest.Form form = FORMS.get(random.nextInt(FORMS.size()));
            final boolean dropUsage = random.nextBoolean();
            final int cached = random.nextInt(3) == 0 ? UsageReader.UNKNOWN : random.nextInt(200);
            try {
                final Seen whole = seen(form, bytes, Integer.MAX_VALUE, dropUsage, cached, random);
                for (int most : new int[] {1, 3, 40}) {
                    assertEquals(whole, seen(form, bytes, most, dropUsage, cached, random));
                }
                if (!dropUsage && cached < 0) {
                    assertEquals(new String(bytes, UTF_8), whole.passed);
                }
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError("seed " + (seed + trial) + ": " + text, e);
            }
        }
    }
}
