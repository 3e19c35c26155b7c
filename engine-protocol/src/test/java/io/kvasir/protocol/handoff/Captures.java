package io.kvasir.protocol.handoff;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** Recorded exchanges, one line each. */
final class Captures {
    private Captures() {}

    static List<VerbatimJson> vllm() {
        return lines("pd-nixl-0.32.0.jsonl");
    }

    static List<VerbatimJson> sglang() {
        return lines("pd-sglang-0.5.23-nixl.jsonl");
    }

    static List<VerbatimJson> lines(String name) {
        try (InputStream file = Captures.class.getResourceAsStream("/captures/" + name)) {
            return new String(file.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .map(VerbatimJson::parse)
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
