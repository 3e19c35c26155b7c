package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

class ModelKeyTest {
    @ParameterizedTest
    @CsvSource({
        "m, m",
        "Qwen_2-7B, Qwen_2-7B",
        "meta-llama/Llama-3.1-8B, meta-llama%2FLlama-3%2E1-8B",
        "'..', %2E%2E",
        "'a b%2F', a%20b%252F",
        "模, %E6%A8%A1",
    })
    void whatCannotStandInAFolderIsWrittenByItsBytes(String name, String key) {
        assertEquals(key, ModelKey.of(name));
    }

    @Test
    void noControlCharacterIsLeft() {
        assertEquals("%00%0A%1B", ModelKey.of("\u0000\n\u001b"));
    }

    @Test
    void aLongNameIsCutAndStaysApartFromAllOthers() {
        final String longName = "x".repeat(10_000);
        final String key = ModelKey.of(longName);
        assertTrue(key.length() <= ModelKey.MAX_LENGTH, key);
        final Set<String> keys = new HashSet<>();
        final List<String> names =
                List.of(
                        longName,
                        "x".repeat(9_999),
                        "x".repeat(9_999) + "y",
                        "x".repeat(ModelKey.MAX_LENGTH),
                        "x".repeat(ModelKey.MAX_LENGTH + 1),
                        "🙂".repeat(5_000),
                        key);
        names.forEach(name -> keys.add(ModelKey.of(name)));
        assertEquals(names.size(), keys.size());
        assertEquals("x".repeat(ModelKey.MAX_LENGTH), ModelKey.of("x".repeat(ModelKey.MAX_LENGTH)));
    }

    @Test
    void noNameLeavesItsFolder() {
        final Path root = Path.of("/state/models");
        for (String name : List.of("..", "../..", "/etc", "a/../../b", ".", "\\..\\x", "C:")) {
            final Path folder = root.resolve(ModelKey.of(name));
            assertEquals(root, folder.normalize().getParent(), name);
            assertNotEquals(root, folder.normalize(), name);
        }
    }
}
