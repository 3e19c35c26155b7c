package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;

class SectionsTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final byte[] IDENTITY = new byte[32];

    /** A memo on the heap. */
    private static final class HeapMemo implements PromptMemo {
        private final Map<ByteBuffer, int[]> kept = new HashMap<>();
        private long hits;
        private long misses;

        @Override
        public int[] get(byte[] key) {
            final int[] found = kept.get(ByteBuffer.wrap(key));
            if (found == null) {
                misses++;
                return null;
            }
            hits++;
            return found.clone();
        }

        @Override
        public void put(byte[] key, int[] tokens) {
            assertEquals(KEY_BYTES, key.length);
            kept.put(ByteBuffer.wrap(key.clone()), tokens.clone());
        }

        @Override
        public PromptMemoCounts counts() {
            return new PromptMemoCounts(hits, misses, 0, 0);
        }

        @Override
        public void close() {
            kept.clear();
        }
    }

    private final HeapMemo memo = new HeapMemo();

    private MemoView view(String salt) {
        return new MemoView(memo, IDENTITY, salt);
    }

    /** With added tokens of every awkward kind. */
    private static Tokenizer awkward() throws IOException {
        final ObjectNode file =
                (ObjectNode)
                        MAPPER.readTree(TestFiles.read("tokenizer/llama3-style/tokenizer.json"));
        final ArrayNode added = file.withArray("added_tokens");
        for (String content :
                List.of(
                        "<a>", "<a>b", "<left>", "<right>", "<word>", "<both>", "qzx", "<n>",
                        "\n")) {
            added.addObject()
                    .put("content", content)
                    .put("special", !content.equals("<n>"))
                    .put("normalized", content.equals("<n>"))
                    .put("lstrip", content.equals("<left>") || content.equals("<both>"))
                    .put("rstrip", List.of("<right>", "<both>", "\n").contains(content))
                    .put("single_word", content.equals("<word>") || content.equals("qzx"));
        }
        return Tokenizers.load(MAPPER.writeValueAsBytes(file), "awkward", MoreTokens.NONE);
    }

    private static String text(Random random, int pieces) {
        final List<String> alphabet =
                List.of(
                        "<a>",
                        "<a>b",
                        "<left>",
                        "<right>",
                        "<word>",
                        "<both>",
                        "qzx",
                        "<n>",
                        " ",
                        "\n",
                        "  \t ",
                        "x",
                        "b",
                        "é",
                        "\uD83D\uDE00",
                        "\uD83D",
                        "qzxy",
                        "<",
                        "<a");
        final StringBuilder out = new StringBuilder();
        for (int i = 0; i < pieces; i++) {
            out.append(alphabet.get(random.nextInt(alphabet.size())));
            if (random.nextInt(10) == 0) {
                out.append("and some filling text, ".repeat(random.nextInt(40)));
            }
        }
        return out.toString();
    }

    @Test
    void whatIsRememberedIsWhatWouldHaveBeenEncoded() throws IOException {
        final Random random = new Random(Seeds.next("sections"));
        try (Tokenizer tokenizer = awkward()) {
            final String[] texts = new String[40];
            for (int i = 0; i < texts.length; i++) {
                texts[i] = text(random, 200);
            }
            for (int round = 0; round < 600; round++) {
                // beginnings, middles and ends of one text in others
                final String one = texts[random.nextInt(texts.length)];
                final String other = texts[random.nextInt(texts.length)];
                final int from = random.nextInt(one.length());
                final int to = from + random.nextInt(one.length() - from);
                final String text =
                        one.substring(from, to) + other.substring(random.nextInt(other.length()));
                final int[] wanted = tokenizer.encode(text, true);
                assertArrayEquals(
                        wanted, tokenizer.encode(text, true, Integer.MAX_VALUE, view(null)));
                assertArrayEquals(
                        wanted, tokenizer.encode(text, true, Integer.MAX_VALUE, view(null)));
            }
        }
        assertTrue(memo.hits > 1_000 && memo.misses > 1_000, memo.counts()::toString);
    }

    /** The one thing that a section's tokens depend on beside itself. */
    @Test
    void sectionsThatDifferInTheCharacterBeforeThemAloneAreKeptApart() throws IOException {
        final String same = "qzx " + message(1) + "<a>";
        try (Tokenizer tokenizer = awkward()) {
            for (String before : List.of("<a>", "<a>b", "<left>", "<n><a>b")) {
                final String text = message(0) + before + same;
                assertArrayEquals(
                        tokenizer.encode(text, false),
                        tokenizer.encode(text, false, 100_000, view(null)),
                        before);
            }
        }
        assertTrue(memo.hits > 0, "some of them have the same before them");
    }

    private static String chat(String... messages) {
        final StringBuilder out = new StringBuilder();
        for (String message : messages) {
            out.append("<a>").append(message);
        }
        return out.append("<a>").append("and so on").toString();
    }

    private static String message(int number) {
        return IntStream.range(0, 300)
                .mapToObj(i -> "m" + number + "." + i)
                .reduce((a, b) -> a + " " + b)
                .orElseThrow();
    }

    @Test
    void aLaterTurnFindsTheEarlierOnesAndATextInAnotherPlaceItsSections() throws IOException {
        try (Tokenizer tokenizer = awkward()) {
            tokenizer.encode(chat(message(0), message(1)), false, 100_000, view(null));
            assertEquals(new PromptMemoCounts(0, 2, 0, 0), memo.counts());
            tokenizer.encode(chat(message(0), message(1), message(2)), false, 100_000, view(null));
            assertEquals(new PromptMemoCounts(2, 3, 0, 0), memo.counts());
            tokenizer.encode(chat(message(9), message(2)), false, 100_000, view(null));
            assertEquals(new PromptMemoCounts(3, 4, 0, 0), memo.counts());
        }
    }

    @Test
    void anotherTenantAndAnotherTokenizerFindNothing() throws IOException {
        try (Tokenizer tokenizer = awkward()) {
            final String text = chat(message(0));
            tokenizer.encode(text, false, 100_000, view("one"));
            for (MemoView other :
                    List.of(
                            view("two"),
                            view(""),
                            view(null),
                            new MemoView(memo, new byte[] {1}, "one"))) {
                tokenizer.encode(text, false, 100_000, other);
            }
            assertEquals(new PromptMemoCounts(0, 5, 0, 0), memo.counts());
            tokenizer.encode(text, false, 100_000, view("one"));
            assertEquals(1, memo.hits);
        }
    }

    @Test
    void shortTextsAndTextsWithoutAddedTokensAreNotLookedUp() throws IOException {
        try (Tokenizer tokenizer = awkward()) {
            tokenizer.encode("<a>short<a>", false, 100_000, view(null));
            tokenizer.encode("long ".repeat(10_000), false, 100_000, view(null));
            tokenizer.encode("", false, 100_000, view(null));
        }
        assertEquals(new PromptMemoCounts(0, 0, 0, 0), memo.counts());
    }

    @Test
    void aPromptThatIsTooLongIsRefusedWithAndWithoutHits() throws IOException {
        try (Tokenizer tokenizer = awkward()) {
            final String text = chat(message(0), message(1));
            final int length = tokenizer.encode(text, false).length;
            for (int round = 0; round < 2; round++) {
                for (int most : new int[] {1, length / 3, length - 1}) {
                    assertThrows(
                            PromptException.class,
                            () -> tokenizer.encode(text, false, most, view(null)));
                }
                assertEquals(length, tokenizer.encode(text, false, length, view(null)).length);
            }
        }
    }
}
