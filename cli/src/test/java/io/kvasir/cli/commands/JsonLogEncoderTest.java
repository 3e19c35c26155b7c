package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.LoggerContext;
import ch.qos.logback.classic.spi.LoggingEvent;

import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.nio.charset.StandardCharsets;

class JsonLogEncoderTest {
    @Test
    void aMessageThatIsCutWithinACharacterIsStillText() throws Exception {
        assertEquals("x".repeat(3_999) + "?", message("x".repeat(3_999) + "😀"));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 3_999, 4_000, 4_001, 100_000})
    void aLineHasAtMostSoMuchOfAMessage(int length) throws Exception {
        assertEquals("\u2028".repeat(Math.min(length, 4_000)), message("\u2028".repeat(length)));
    }

    /** What the line of a message has of it. */
    private static String message(String text) throws Exception {
        final LoggerContext context = new LoggerContext();
        final LoggingEvent event =
                new LoggingEvent(
                        "caller", context.getLogger("library"), Level.WARN, text, null, null);
        final String line =
                new String(new JsonLogEncoder(context).encode(event), StandardCharsets.UTF_8);
        assertTrue(line.endsWith("}\n"), line);
        return Json.MAPPER.readTree(line).get("message").textValue();
    }
}
