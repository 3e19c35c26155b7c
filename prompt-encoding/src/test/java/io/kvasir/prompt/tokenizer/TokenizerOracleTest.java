package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.util.Random;

/** The own BPE against the Hugging Face library: equal ids for every text. */
class TokenizerOracleTest {
    static Tokenizer own(String directory) throws IOException {
        final Tokenizer own =
                Tokenizers.load(
                        TestFiles.read("tokenizer/" + directory + "/tokenizer.json"),
                        directory,
                        MoreTokens.NONE);
        return assertInstanceOf(ByteLevelBpe.class, own);
    }

    @ParameterizedTest
    @ValueSource(strings = {"tiny", "llama3-style", "qwen-style"})
    void encodesEveryTextToTheIdsOfTheReferenceLibrary(String directory) throws IOException {
        encode(2_000, directory);
    }

    @Tag("integration") // takes seconds
    @ParameterizedTest
    @ValueSource(strings = {"tiny", "llama3-style", "qwen-style"})
    void encodesManyTextsToTheIdsOfTheReferenceLibrary(String directory) throws IOException {
        encode(20_000, directory);
    }

    private static void encode(int count, String directory) throws IOException {
        final RandomTexts texts = new RandomTexts(Seeds.next("tokenizer " + directory));
        try (Tokenizer own = own(directory);
                Tokenizer oracle =
                        new DjlTokenizer(
                                TestFiles.read("tokenizer/" + directory + "/tokenizer.json"))) {
            for (int i = 0; i < count; i++) {
                final String text = texts.next(i % 100 == 0 ? 400 : 24);
                final boolean special = i % 2 == 0;
                assertArrayEquals(
                        oracle.encode(text, special),
                        own.encode(text, special),
                        () -> escaped(text));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tiny", "llama3-style", "qwen-style"})
    void encodesLongRunsLikeTheReferenceLibrary(String directory) throws IOException {
        try (Tokenizer own = own(directory);
                Tokenizer oracle =
                        new DjlTokenizer(
                                TestFiles.read("tokenizer/" + directory + "/tokenizer.json"))) {
            for (String unit :
                    new String[] {"a", "ab", "thequick", " ", "\n", "é", "😀", "7", "=-", "の"}) {
                final String text = unit.repeat(3000);
                assertArrayEquals(oracle.encode(text, true), own.encode(text, true), unit);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tiny", "llama3-style", "qwen-style"})
    void decodesAnyIdsLikeTheReferenceLibrary(String directory) throws IOException {
        final Random random = new Random(Seeds.next("decode " + directory));
        try (Tokenizer own = own(directory);
                Tokenizer oracle =
                        new DjlTokenizer(
                                TestFiles.read("tokenizer/" + directory + "/tokenizer.json"))) {
            assertEquals(oracle.idCount(), own.idCount());
            for (int i = 0; i < 1500; i++) {
                final int[] ids = random.ints(random.nextInt(20), 0, own.idCount()).toArray();
                final boolean skip = i % 2 == 0;
                assertEquals(oracle.decode(ids, skip), own.decode(ids, skip));
            }
        }
    }

    static String escaped(String text) {
        final StringBuilder out = new StringBuilder();
        text.chars()
                .forEach(c -> out.append(c < 32 || c > 126 ? "\\u%04x".formatted(c) : (char) c));
        return out.toString();
    }
}
