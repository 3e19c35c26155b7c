package io.kvasir.gateway.openai;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;

class TreeMeterTest {
    private static final String MESSAGE = "{\"role\":\"user\",\"content\":\"TEXT\"VALUES}";

    private static InferenceRequest parse(String messageValues, String values) throws ApiException {
        final String body =
                "{\"messages\":["
                        + MESSAGE.replace("TEXT", "{},".repeat(20_000))
                                .replace("VALUES", messageValues)
                        + "]"
                        + values
                        + "}";
        return RequestParser.parse(
                InferenceRequest.Route.CHAT, body.getBytes(StandardCharsets.UTF_8), 100_000);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tools", "documents", "nvext", "router_config_override"})
    void aBodyOfManySmallValuesIsRefusedWithTheLimit(String member) {
        final String values = "[" + "{},".repeat(1000) + "{}]";
        assertRefused("", ",\"" + member + "\":" + values);
        assertRefused(",\"tool_calls\":" + values, "");
    }

    private static void assertRefused(String messageValues, String values) {
        final ApiException e = assertThrows(ApiException.class, () -> parse(messageValues, values));
        assertEquals(413, e.status());
        assertEquals(
                "the JSON values of the body need more than 100000 bytes of memory, an eighth of"
                        + " the heap; send fewer of them or give the gateway a larger heap (-Xmx"
                        + " in KVASIR_OPTS)",
                e.getMessage());
    }

    @Test
    void aBodyThatIsWrittenAnewIsCountedWhole() throws Exception {
        final String values = "{\"unknown\":[" + "{},".repeat(1000) + "{}]}";
        final byte[] body = values.getBytes(StandardCharsets.UTF_8);
        assertEquals(
                413, assertThrows(ApiException.class, () -> Json.tree(body, 100_000)).status());
        assertEquals(Json.MAPPER.readTree(body), Json.tree(body, 200_000));
    }

    @Test
    void textsAndWhatIsNotReadAreNotCounted() throws ApiException {
        parse("", ",\"unknown\":[" + "{},".repeat(5000) + "{}]");
    }
}
