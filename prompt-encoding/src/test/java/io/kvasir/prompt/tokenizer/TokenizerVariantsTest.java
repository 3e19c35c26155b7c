package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.files.TestFiles;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/** Other settings of tokenizer.json than the recorded files have, made by editing those. */
class TokenizerVariantsTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private static ObjectNode file(String directory) throws IOException {
        return (ObjectNode)
                MAPPER.readTree(TestFiles.read("tokenizer/" + directory + "/tokenizer.json"));
    }

    private static Tokenizer load(JsonNode file) throws IOException {
        return Tokenizers.load(MAPPER.writeValueAsBytes(file), "edited", MoreTokens.NONE);
    }

    private static void assertSameIds(JsonNode file, String name) throws IOException {
        final RandomTexts texts = new RandomTexts(Seeds.next(name));
        try (Tokenizer own = assertInstanceOf(ByteLevelBpe.class, load(file));
                Tokenizer oracle = new DjlTokenizer(MAPPER.writeValueAsBytes(file))) {
            for (int i = 0; i < 150; i++) {
                final String text = texts.next(20);
                assertArrayEquals(
                        oracle.encode(text, true),
                        own.encode(text, true),
                        () -> name + ": " + TokenizerOracleTest.escaped(text));
            }
        }
    }

    private static ObjectNode node(String json) throws IOException {
        return (ObjectNode) MAPPER.readTree(json);
    }

    private static ObjectNode withPreTokenizer(String... steps) throws IOException {
        final ObjectNode file = file("llama3-style");
        final ArrayNode sequence =
                file.putObject("pre_tokenizer").put("type", "Sequence").putArray("pretokenizers");
        for (String step : steps) {
            sequence.add(node(step));
        }
        return file;
    }

    @ParameterizedTest
    @CsvSource({
        "Isolated, false",
        "Isolated, true",
        "Removed, false",
        "Removed, true",
        "MergedWithPrevious, false",
        "MergedWithPrevious, true",
        "MergedWithNext, false",
        "MergedWithNext, true",
        "Contiguous, false",
        "Contiguous, true"
    })
    void splitsWithEveryBehaviour(String behaviour, boolean invert) throws IOException {
        for (String pattern :
                new String[] {"{\"Regex\": \"\\\\s+|\\\\p{N}\"}", "{\"String\": \" \"}"}) {
            assertSameIds(
                    withPreTokenizer(
                            "{\"type\":\"Split\",\"pattern\":%s,\"behavior\":\"%s\",\"invert\":%s}"
                                    .formatted(pattern, behaviour, invert),
                            "{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":false,\"use_regex\":false}"),
                    "split " + behaviour + " " + invert);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r"
                        + "\\n"
                        + "\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r"
                        + "\\n"
                        + "]*|\\s*[\\r"
                        + "\\n"
                        + "]+|\\s+(?!\\S)|\\s+",
                "'(?i:[sdmt]|ll|ve|re)|[^\\r"
                        + "\\n"
                        + "\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r"
                        + "\\n"
                        + "]*+|\\s++",
                "[^\\r"
                    + "\\n"
                    + "\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r"
                    + "\\n"
                    + "\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}|"
                    + " ?[^\\s\\p{L}\\p{N}]+[\\r"
                    + "\\n"
                    + "/]*|\\s*[\\r"
                    + "\\n"
                    + "]+|\\s+(?!\\S)|\\s+",
                "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r"
                        + "\\n"
                        + "\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r"
                        + "\\n"
                        + "]*|\\s*[\\r"
                        + "\\n"
                        + "]+|\\s+(?!\\S)|\\s+",
                "[一-龥぀-ゟ゠-ヿ]+",
                "\\p{Han}+|\\p{^Latin}|\\P{N}{2,4}?|(?<=a)b|(?<! )\\d|\\x{1F600}|\\u00e9|\\x41.",
            })
    void understandsThePatternsOfKnownModels(String pattern) throws IOException {
        final ObjectNode split =
                node("{\"type\":\"Split\",\"behavior\":\"Isolated\",\"invert\":false}");
        split.putObject("pattern").put("Regex", pattern);
        final JsonNode file =
                withPreTokenizer(
                        split.toString(),
                        "{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":false,\"use_regex\":false}");
        assertSameIds(file, "pattern");
    }

    @Test
    void putsASpaceInFrontOfEveryPieceWhenAsked() throws IOException {
        assertSameIds(
                withPreTokenizer(
                        "{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":true,\"use_regex\":true}"),
                "prefix");
        assertSameIds(
                withPreTokenizer(
                        "{\"type\":\"Digits\",\"individual_digits\":false}",
                        "{\"type\":\"ByteLevel\",\"trim_offsets\":true,\"add_prefix_space\":true,\"use_regex\":false}"),
                "prefix after digits");
    }

    @Test
    void readsMergesWrittenAsStringsAndWithoutIgnoringThem() throws IOException {
        final ObjectNode file = file("llama3-style");
        final ObjectNode model = (ObjectNode) file.get("model");
        final ArrayNode strings = MAPPER.createArrayNode();
        strings.add("#version: 0.2"); // as merges.txt, a file of their own, begins
        for (JsonNode pair : model.get("merges")) {
            strings.add(pair.get(0).asText() + " " + pair.get(1).asText());
        }
        model.set("merges", strings);
        model.put("ignore_merges", false);
        assertSameIds(file, "string merges");
    }

    @ParameterizedTest
    @ValueSource(strings = {"NFC", "NFD", "NFKC", "NFKD"})
    void normalizesLikeTheReferenceLibrary(String form) throws IOException {
        final ObjectNode file = file("qwen-style");
        file.set(
                "normalizer",
                node(
                        "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"%s\"}]}"
                                .formatted(form)));
        assertSameIds(file, form);
    }

    @Test
    void dropsBytesThatTheVocabularyLacks() throws IOException {
        final ObjectNode file = file("tiny");
        final ObjectNode model = (ObjectNode) file.get("model");
        ((ObjectNode) model.get("vocab")).remove(List.of("~", "Ń"));
        assertSameIds(file, "missing bytes");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/normalizer | {\"type\":\"Lowercase\"} | normalizer Lowercase",
                "/pre_tokenizer | {\"type\":\"Whitespace\"} | ends with Whitespace",
                "/model/dropout | 0.5 | dropout",
                "/model/end_of_word_suffix | \"</w>\" | end_of_word_suffix",
                "/decoder | null | decoder"
            })
    void namesWhatItLeavesToTheLibrary(String where, String value, String expected)
            throws IOException {
        final ObjectNode file = file("tiny");
        final int slash = where.lastIndexOf('/');
        ((ObjectNode) file.at(where.substring(0, slash)))
                .set(where.substring(slash + 1), MAPPER.readTree(value));
        final byte[] json = MAPPER.writeValueAsBytes(file);
        final UnsupportedTokenizerException refusal =
                assertThrows(
                        UnsupportedTokenizerException.class,
                        () -> TokenizerJson.read(new ByteArrayInputStream(json), MoreTokens.NONE));
        assertTrue(refusal.getMessage().contains(expected), refusal.getMessage());
        try (Tokenizer fallback = load(file)) {
            assertInstanceOf(DjlTokenizer.class, fallback);
            assertTrue(fallback.encode("hello", false).length > 0);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "\\w+",
                "a\\b",
                "^a",
                "a$",
                "(ab)+",
                "[a&&b]",
                "[[:alpha:]]",
                "(?i)a",
                "(?i:é)",
                "(?>a)",
                "\\p{Alpha}",
                "a{,3}",
                "(a)\\1",
                "\\h",
                "a{1,2}+",
                "a*",
                "\\d|x?",
                "a{0,2}",
                "(?=a)",
                "(?:a|b*)",
                "(?:a)?",
                "a|"
            })
    void refusesPatternsThatTheTwoEnginesReadDifferently(String pattern) {
        assertThrows(UnsupportedTokenizerException.class, () -> SplitPattern.compile(pattern));
    }

    @Test
    void leavesATokenThatIsAddedInTwoWaysToTheLibrary() throws IOException {
        final ObjectNode file = file("tiny");
        final ArrayNode added = (ArrayNode) file.get("added_tokens");
        added.add(added.get(0).deepCopy());
        assertSameIds(file, "a token twice");
        added.add(((ObjectNode) added.get(0).deepCopy()).put("rstrip", true).put("lstrip", true));
        try (Tokenizer fallback = load(file)) {
            assertInstanceOf(DjlTokenizer.class, fallback);
        }
    }

    @Test
    void saysBothReasonsWhenNothingCanReadTheFile() throws IOException {
        final ObjectNode file = file("tiny");
        file.set("normalizer", node("{\"type\":\"NoSuchNormalizer\"}"));
        final TokenizerException error = assertThrows(TokenizerException.class, () -> load(file));
        assertTrue(error.getMessage().contains("normalizer NoSuchNormalizer"), error.getMessage());
        assertTrue(error.getMessage().contains("DJL"), error.getMessage());
    }

    @Test
    void namesTheFileThatIsMissingOrBroken(@TempDir Path folder) throws IOException {
        final TokenizerException missing =
                assertThrows(TokenizerException.class, () -> Tokenizers.load(folder));
        final Path file = folder.resolve("tokenizer.json");
        assertEquals("cannot read " + file + ": there is no file " + file, missing.getMessage());
        Files.writeString(file, "{\"model\": {]");
        final TokenizerException broken =
                assertThrows(TokenizerException.class, () -> Tokenizers.load(folder));
        assertTrue(
                broken.getMessage().startsWith("cannot read " + file + ": line 1, column "),
                broken.getMessage());
        assertFalse(broken.getMessage().contains("Source"), broken.getMessage());
    }

    @Test
    void readsALoneSurrogateAsTheReplacementCharacter() throws IOException {
        try (Tokenizer own = TokenizerOracleTest.own("qwen-style")) {
            assertArrayEquals(
                    own.encode("a\uFFFDb 😀\uFFFD", true), own.encode("a\uD83Db 😀\uDE00", true));
        }
    }

    @ParameterizedTest
    @CsvSource({"true, false", "true, true", "false, false"})
    void findsTokensInWhiteSpaceThatAnotherSwallows(boolean newlineStrips, boolean left)
            throws IOException {
        final ObjectNode file = file("tiny");
        final ArrayNode added = (ArrayNode) file.get("added_tokens");
        added.addObject()
                .put("id", 696)
                .put("content", "\n\n")
                .put("single_word", false)
                .put("lstrip", left)
                .put("rstrip", newlineStrips)
                .put("normalized", false)
                .put("special", true);
        ((ObjectNode) added.get(0)).put("rstrip", true).put("special", true);
        final String first = added.get(0).get("content").asText();
        final String lines = "the quick brown fox\n".repeat(20);
        try (Tokenizer own = assertInstanceOf(ByteLevelBpe.class, load(file));
                Tokenizer oracle = new DjlTokenizer(MAPPER.writeValueAsBytes(file))) {
            for (String text :
                    List.of(
                            "a\n\n\n\n\n\nb",
                            "a\n\n \n\n\n b",
                            first + "\n\n\nb",
                            first + " \n\n",
                            lines + first + " \n\n\n" + lines + first + "x",
                            lines + first + " " + lines + first + "x")) {
                assertArrayEquals(
                        oracle.encode(text, true),
                        own.encode(text, true),
                        () -> TokenizerOracleTest.escaped(text));
            }
        }
    }

    /** The library would end the process at the first token with white space behind it. */
    @Test
    void whiteSpaceThatSwallowsWhatIsBeforeItIsNotForTheLibrary() throws IOException {
        final ObjectNode file = file("tiny");
        final ArrayNode added = (ArrayNode) file.get("added_tokens");
        ((ObjectNode) added.get(0)).put("rstrip", true);
        final ObjectNode token = added.addObject().put("id", 696).put("content", " \u2003\n");
        token.put("single_word", false).put("normalized", false).put("special", true);
        token.put("lstrip", true).put("rstrip", false);
        load(file).close();
        final IOException refusal =
                assertThrows(
                        IOException.class,
                        () -> new DjlTokenizer(MAPPER.writeValueAsBytes(file)).close());
        assertTrue(
                refusal.getMessage().contains("added token 696 is white space"),
                refusal.getMessage());
        token.put("rstrip", true);
        new DjlTokenizer(MAPPER.writeValueAsBytes(file)).close();
    }

    /** Recorded of vLLM 0.32 (TokenizeParams) over transformers 5.19 and the same file. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1 | 4001",
                "2 | 70, 4001",
                "3 | 4000, 4000, 4001",
                "5 | 4000, 4000, 750, 70, 4001",
                "22 | 4000, 4000, 1814, 3298, 89, 88, 750, 70, 4001",
            })
    void keepsAddedTokensOfALongText(int most, String expected) throws IOException {
        final ObjectNode file = file("llama3-style");
        file.set(
                "post_processor",
                node(
                        """
                        {"type": "TemplateProcessing",
                         "single": [{"SpecialToken": {"id": "B", "type_id": 0}},
                                    {"SpecialToken": {"id": "B", "type_id": 0}},
                                    {"Sequence": {"id": "A", "type_id": 0}},
                                    {"SpecialToken": {"id": "E", "type_id": 0}}],
                         "pair": [],
                         "special_tokens": {"B": {"id": "B", "ids": [4000], "tokens": ["b"]},
                                            "E": {"id": "E", "ids": [4001], "tokens": ["e"]}}}
                        """));
        try (Tokenizer own = assertInstanceOf(ByteLevelBpe.class, load(file));
                Tokenizer library = new DjlTokenizer(MAPPER.writeValueAsBytes(file))) {
            for (Tokenizer tokenizer : List.of(own, library)) {
                assertEquals(
                        "[" + expected + "]",
                        Arrays.toString(
                                tokenizer.keepLast(tokenizer.encode("the lazy dog", true), most)));
            }
        }
    }

    @Test
    void findsTokensByContentAndCountsThem() throws IOException {
        try (Tokenizer own = TokenizerOracleTest.own("tiny")) {
            assertEquals(2, own.idOf("<|im_start|>"));
            assertEquals(Tokenizer.NO_TOKEN, own.idOf("no such token"));
            assertEquals("<|im_start|>", own.contentOf(2));
            assertNull(own.contentOf(-1));
            assertNull(own.contentOf(own.idCount()));
            assertEquals(696, own.idCount());
            assertEquals(
                    own.encode("one two three", true).length,
                    own.countTokens("one two three", true));
            assertEquals("one <|im_end|>", own.decode(own.encode("one <|im_end|>", false)));
            assertEquals("one ", own.decode(own.encode("one <|im_end|>", true), true));
        }
    }

    @Test
    void servesManyThreadsAtOnce() throws Exception {
        final RandomTexts random = new RandomTexts(Seeds.next("threads"));
        final List<String> texts = IntStream.range(0, 200).mapToObj(i -> random.next(40)).toList();
        try (Tokenizer alone = TokenizerOracleTest.own("llama3-style");
                Tokenizer shared = TokenizerOracleTest.own("llama3-style");
                ExecutorService pool = Executors.newFixedThreadPool(4)) {
            final List<int[]> expected = texts.stream().map(t -> alone.encode(t, true)).toList();
            final Callable<Void> work =
                    () -> {
                        for (int round = 0; round < 5; round++) {
                            for (int i = 0; i < texts.size(); i++) {
                                assertArrayEquals(
                                        expected.get(i), shared.encode(texts.get(i), true));
                            }
                        }
                        return null;
                    };
            for (Future<Void> done : pool.invokeAll(List.of(work, work, work, work))) {
                done.get();
            }
        }
    }

    @Test
    void decodesBrokenUtf8ByTheUnicodePractice() {
        final byte[] bytes = {
            'a', (byte) 0xF0, (byte) 0x9F, (byte) 0x98, 'b', (byte) 0xC0, (byte) 0xAF
        };
        assertEquals("a\uFFFDb\uFFFD\uFFFD", Utf8Text.decode(bytes));
        assertEquals("é😀", Utf8Text.decode("é😀".getBytes(StandardCharsets.UTF_8)));
    }
}
