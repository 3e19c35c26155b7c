package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;

import java.net.ProtocolException;
import java.nio.charset.StandardCharsets;

class WholeStreamTest {
    private static final String USED = "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1}";
    private static final String END = "data: [DONE]\n\n";

    private static String stream(String answer, boolean usage) throws ProtocolException {
        return new String(
                WholeStream.of(answer.getBytes(StandardCharsets.UTF_8), usage),
                StandardCharsets.UTF_8);
    }

    @Test
    void aCompletionIsOneEventAndItsUsageAnother() throws Exception {
        final String head = "{\"id\":\"c\",\"object\":\"text_completion\",\"choices\":[";
        final String choice = "{\"index\":0,\"text\":\"é\",\"finish_reason\":\"stop\"}";
        assertEquals(
                "data: " + head + choice + "]}\n\ndata: " + head + "]," + USED + "}\n\n" + END,
                stream(head + choice + "]," + USED + "}", true));
    }

    @Test
    void usageThatWasNotAskedForIsLeftOut() throws Exception {
        assertEquals(
                "data: {\"choices\":[{\"text\":\"a\"}]}\n\n" + END,
                stream("{\"choices\":[{\"text\":\"a\"}]," + USED + "}", false));
        assertEquals("data: {\"choices\":[]}\n\n" + END, stream("{\"choices\":[]}", true));
    }

    @Test
    void theMessageOfAChatIsADelta() throws Exception {
        assertEquals(
                "data: {\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,"
                        + "\"finish_reason\":\"stop\",\"delta\":{\"role\":\"assistant\","
                        + "\"content\":\"\"}}]}\n\n"
                        + END,
                stream(
                        "{\"object\":\"chat.completion\",\"choices\":[{\"index\":0,\"message\":{"
                                + "\"role\":\"assistant\",\"content\":\"\"},"
                                + "\"finish_reason\":\"stop\"}]}",
                        false));
    }

    @Test
    void whatIsNoObjectIsNoAnswer() {
        assertThrows(ProtocolException.class, () -> stream("[]", false));
        assertThrows(ProtocolException.class, () -> stream("{", false));
    }
}
