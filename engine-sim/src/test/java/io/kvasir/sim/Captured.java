package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.sim.testing.Http;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Recorded exchanges with real engines, see {@code handoff/README.md}. */
final class Captured {
    private Captured() {}

    static List<JsonNode> lines(String name) {
        try (InputStream in = Captured.class.getResourceAsStream("/handoff/" + name)) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .map(Http::tree)
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Same fields in the same order with values of the same types, all the way down. */
    static void assertShape(String where, JsonNode real, JsonNode simulated) {
        assertEquals(real.getNodeType(), simulated.getNodeType(), where);
        if (real.isArray() && !real.isEmpty()) {
            assertShape(where + "[0]", real.get(0), simulated.get(0));
        }
        final List<String> fields = new ArrayList<>();
        real.fieldNames().forEachRemaining(fields::add);
        final List<String> simulatedFields = new ArrayList<>();
        simulated.fieldNames().forEachRemaining(simulatedFields::add);
        assertEquals(fields, simulatedFields, where);
        for (String field : fields) {
            assertShape(where + "." + field, real.get(field), simulated.get(field));
        }
    }
}
