package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.testsupport.Allocations;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.util.Random;
import java.util.concurrent.CancellationException;

class WordMemoryTest {
    private static byte[] file() throws IOException {
        return TestFiles.read("tokenizer/llama3-style/tokenizer.json");
    }

    @Test
    void aWordThatCannotHaveEnoughIsRefusedWithItsSizeAndTheLimit() {
        final WordMemory memory = new WordMemory(1 << 20);
        final PromptException e = assertThrows(PromptException.class, () -> memory.take(1_000_000));
        assertEquals(PromptException.Kind.LIMIT, e.kind());
        assertEquals(
                "the prompt has a word of 1000000 bytes, without a boundary in it; at most 38836"
                        + " can be tokenized with this heap; shorten it or give the gateway a"
                        + " larger heap (-Xmx in KVASIR_OPTS)",
                e.getMessage());
    }

    @Test
    void aWordWaitsForOthersUntilItIsInterrupted() {
        final WordMemory memory = new WordMemory(1 << 20);
        final int taken = memory.take(30_000);
        Thread.currentThread().interrupt();
        assertThrows(CancellationException.class, () -> memory.take(30_000));
        assertTrue(Thread.interrupted());
        memory.giveBack(taken);
        assertEquals(taken, memory.take(30_000));
    }

    @Test
    void aWordWithMoreTokensThanMayBeIsRefusedBeforeItsMemoryIsTaken() throws Exception {
        try (Tokenizer own = Tokenizers.load(file(), "own", MoreTokens.NONE)) {
            final String word = "a".repeat(2_000_000);
            final long bytes =
                    Allocations.bytesPerRound(
                            1,
                            () ->
                                    assertEquals(
                                            PromptException.tooLong(1000).getMessage(),
                                            assertThrows(
                                                            PromptException.class,
                                                            () -> own.encode(word, false, 1000))
                                                    .getMessage()));
            assertTrue(bytes < 8L * word.length(), bytes + " bytes were allocated");
        }
    }

    @Test
    void longWordsAreCutLikeTheReferenceLibraryDoes() throws Exception {
        final Random random = new Random(7);
        try (Tokenizer own = Tokenizers.load(file(), "own", MoreTokens.NONE);
                Tokenizer oracle = new DjlTokenizer(file())) {
            for (int length : new int[] {65, 1000, 70_000}) {
                final StringBuilder word = new StringBuilder();
                while (word.length() < length) {
                    word.append("etaoinshr\u00e9".charAt(random.nextInt(10)));
                }
                for (String text :
                        new String[] {
                            word.toString(), "in".repeat(length / 2), "a".repeat(length)
                        }) {
                    assertArrayEquals(oracle.encode(text, false), own.encode(text, false));
                }
            }
        }
    }
}
