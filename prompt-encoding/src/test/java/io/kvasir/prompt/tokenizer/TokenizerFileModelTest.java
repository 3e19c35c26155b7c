package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Random small {@code tokenizer.json} files beside the Hugging Face library: a file that the own
 * implementation takes gives the same ids of any text, all others are left to the library.
 */
@Tag("trials")
class TokenizerFileModelTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final String[] CONTENTS = {
        "<s>",
        "</s>",
        "<mask>",
        "<|im_start|>",
        "<|im_end|>",
        "<|im",
        " ",
        "  ",
        "\n",
        "\n\n",
        "the",
        " the",
        "word",
        "s",
        "é",
        "e\u0301",
        "ﬁ",
        "fi",
        "Å",
        "Å",
        "<mask> ",
        " <mask>",
        "1",
        "12",
        "你好",
        "😀",
        "\u00a0",
        "<right>",
        "\t",
        "a",
        "Ġthe",
        "Ġ",
        "\u0301",
        "\uFFFD"
    };
    private static final String[] PATTERNS = {
        "\\s+",
        "\\p{N}",
        "\\p{N}{1,3}",
        " ?\\p{L}+",
        "a*",
        "\\s*",
        "(?=[A-Z])",
        "\\d|x?",
        "[^a]?",
        "(?:ab|a)?",
        ".",
        "\\S+\\s?",
        "'(?i:[sdmt]|ll|ve|re)",
        "(?<=\\s)\\S",
        "\\n|\\r",
        "[\\s\\S]",
        "",
        "\\p{Lu}\\p{Ll}*",
        "\\p{M}+",
        "\\p{Z}",
        "[\\p{P}\\p{S}]+",
        "\\p{^L}",
        "\\P{L}{2}",
        "\\p{Han}+",
        "\\p{Latin}+",
        "\\D+",
        "[^\\d\\s]+"
    };

    private Random random;

    @Test
    void encodesAsTheLibraryOrLeavesTheFileToIt() throws IOException {
        final int trials = Trials.of(6, 40);
        final Random seeds = new Random(Seeds.next("tokenizer files"));
        int own = 0;
        for (int trial = 0; trial < trials; trial++) {
            final long seed = seeds.nextLong();
            own += trial(seed) ? 1 : 0;
        }
        assertTrue(own > 0, "every file was left to the library");
    }

    private boolean trial(long seed) throws IOException {
        random = new Random(seed);
        final ObjectNode file = file();
        final byte[] json = MAPPER.writeValueAsBytes(file);
        try (Tokenizer tokenizer = Tokenizers.load(json, "random", MoreTokens.NONE)) {
            if (!(tokenizer instanceof ByteLevelBpe)) {
                return false;
            }
            final RandomTexts texts = new RandomTexts(seed);
            try (Tokenizer library = new DjlTokenizer(json)) {
                for (int i = 0; i < 40; i++) {
                    final String text = text(texts);
                    final boolean special = random.nextBoolean();
                    assertEquals(
                            Arrays.toString(library.encode(text, special)),
                            Arrays.toString(tokenizer.encode(text, special)),
                            () ->
                                    "seed "
                                            + seed
                                            + ", text "
                                            + TokenizerOracleTest.escaped(text)
                                            + "\n"
                                            + settingsOf(file));
                }
            }
            return true;
        } catch (TokenizerException e) {
            return false; // the library does not read it either
        }
    }

    private String text(RandomTexts texts) {
        final StringBuilder text = new StringBuilder();
        final int parts = random.nextInt(4);
        for (int i = 0; i <= parts; i++) {
            text.append(texts.next(6));
            for (int n = random.nextInt(3); n > 0; n--) {
                text.append(CONTENTS[random.nextInt(CONTENTS.length)]);
            }
        }
        return text.toString();
    }

    private static String settingsOf(ObjectNode file) {
        final ObjectNode shown = file.deepCopy();
        ((ObjectNode) shown.get("model")).remove(List.of("vocab", "merges"));
        return shown.toString();
    }

    private ObjectNode file() {
        final ObjectNode file = JsonNodeFactory.instance.objectNode();
        file.put("version", "1.0");
        switch (random.nextInt(6)) {
            case 0 ->
                    file.putObject("truncation")
                            .put("direction", "Right")
                            .put("max_length", 4096)
                            .put("strategy", "LongestFirst")
                            .put("stride", 0);
            case 1 -> file.putNull("truncation");
            default -> {}
        }
        file.putNull("padding");
        final ObjectNode model = model();
        final ArrayNode added = file.putArray("added_tokens");
        addedTokens(added, (ObjectNode) model.get("vocab"));
        file.set("normalizer", normalizer());
        file.set("pre_tokenizer", preTokenizer());
        file.set("post_processor", postProcessor());
        file.set("decoder", once(20) ? null : byteLevel());
        file.set("model", model);
        return file;
    }

    private boolean once(int in) {
        return random.nextInt(in) == 0;
    }

    private static ObjectNode of(String type) {
        return JsonNodeFactory.instance.objectNode().put("type", type);
    }

    private ObjectNode byteLevel() {
        return of("ByteLevel")
                .put("add_prefix_space", once(5))
                .put("trim_offsets", random.nextBoolean())
                .put("use_regex", random.nextBoolean());
    }

    private ObjectNode model() {
        final ObjectNode model = of("BPE");
        if (once(2)) {
            model.putNull("dropout");
        }
        if (once(30)) {
            model.put("dropout", 0.0);
        }
        if (once(8)) {
            model.put("unk_token", "<unk>");
        } else {
            model.putNull("unk_token");
        }
        model.put("continuing_subword_prefix", once(3) ? "" : null);
        model.put("end_of_word_suffix", once(3) ? "" : null);
        model.put("fuse_unk", once(3));
        model.put("byte_fallback", once(8));
        model.put("ignore_merges", once(3));
        final Map<String, Integer> vocabulary = new LinkedHashMap<>();
        final boolean gaps = once(6);
        if (once(3)) {
            vocabulary.put("<unk>", vocabulary.size());
        }
        for (int b = 0; b < 256; b++) {
            if (!gaps || !once(40)) {
                vocabulary.put(String.valueOf(ByteAlphabet.characterOf(b)), vocabulary.size());
            }
        }
        final ArrayNode merges = JsonNodeFactory.instance.arrayNode();
        merges(vocabulary, merges, random.nextInt(300));
        for (int n = random.nextInt(6); n > 0; n--) {
            vocabulary.putIfAbsent(
                    CONTENTS[random.nextInt(CONTENTS.length)],
                    vocabulary.size() + (once(12) ? 5 : 0));
        }
        final ObjectNode vocab = model.putObject("vocab");
        vocabulary.forEach(vocab::put);
        model.set("merges", merges);
        return model;
    }

    /** Pairs that occur in texts of the kind that is encoded, in the order they are found. */
    private void merges(Map<String, Integer> vocabulary, ArrayNode merges, int count) {
        final boolean asPairs = random.nextBoolean();
        if (!asPairs && once(4)) {
            merges.add("#version: 0.2");
        }
        final RandomTexts texts = new RandomTexts(random.nextLong());
        final List<List<String>> words = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            final byte[] bytes = texts.next(3).getBytes(StandardCharsets.UTF_8);
            final List<String> word = new ArrayList<>();
            for (byte b : bytes) {
                final String one = String.valueOf(ByteAlphabet.characterOf(b & 0xFF));
                if (vocabulary.containsKey(one)) {
                    word.add(one);
                }
            }
            words.add(word);
        }
        for (int i = 0; i < count; i++) {
            final List<String> word = words.get(random.nextInt(words.size()));
            if (word.size() < 2) {
                continue;
            }
            final int at = random.nextInt(word.size() - 1);
            final String left = word.get(at);
            final String right = word.get(at + 1);
            vocabulary.putIfAbsent(left + right, vocabulary.size());
            if (asPairs) {
                merges.addArray().add(left).add(right);
            } else {
                merges.add(left + " " + right);
            }
            word.set(at, left + right);
            word.remove(at + 1);
        }
    }

    private void addedTokens(ArrayNode added, ObjectNode vocabulary) {
        int next = vocabulary.size();
        int largest = -1;
        final Map<String, Integer> given = new LinkedHashMap<>();
        for (int n = random.nextInt(8); n > 0; n--) {
            final String content = CONTENTS[random.nextInt(CONTENTS.length)];
            Integer id = given.get(content);
            if (id == null && vocabulary.has(content)) {
                id = vocabulary.get(content).asInt();
            } else if (id == null) {
                id = Math.max(next, largest + 1);
            }
            largest = Math.max(largest, id);
            given.put(content, id);
            final boolean rightStrip = once(3);
            // white space that one token swallows from two sides ends the library's process
            final boolean leftStrip = once(3) && (rightStrip || !content.matches("(?Us)\\s.*"));
            added.addObject()
                    .put("id", once(100) ? id + 1 : id)
                    .put("content", content)
                    .put("single_word", once(4))
                    .put("lstrip", leftStrip)
                    .put("rstrip", rightStrip)
                    .put("normalized", once(2))
                    .put("special", once(2));
        }
    }

    private ObjectNode normalizer() {
        return switch (random.nextInt(8)) {
            case 0 -> of("NFC");
            case 1 -> of("NFD");
            case 2 -> of("NFKC");
            case 3 -> of("NFKD");
            case 4 -> {
                final ObjectNode sequence = of("Sequence");
                final ArrayNode steps = sequence.putArray("normalizers");
                for (int n = random.nextInt(3); n > 0; n--) {
                    steps.add(once(4) ? of("Lowercase") : of("NFKC"));
                }
                yield sequence;
            }
            default -> null;
        };
    }

    private ObjectNode preTokenizer() {
        if (once(30)) {
            return null;
        }
        if (once(4)) {
            return byteLevel();
        }
        final ObjectNode sequence = of("Sequence");
        final ArrayNode steps = sequence.putArray("pretokenizers");
        for (int n = random.nextInt(4); n > 0; n--) {
            steps.add(
                    switch (random.nextInt(12)) {
                        case 0 -> of("Digits").put("individual_digits", random.nextBoolean());
                        case 1 -> of("Punctuation").put("behavior", "Isolated");
                        default -> split();
                    });
        }
        steps.add(byteLevel());
        return sequence;
    }

    private ObjectNode split() {
        final ObjectNode split = of("Split");
        final ObjectNode pattern = split.putObject("pattern");
        if (once(3)) {
            pattern.put("String", once(8) ? "" : CONTENTS[random.nextInt(CONTENTS.length)]);
        } else {
            pattern.put("Regex", PATTERNS[random.nextInt(PATTERNS.length)]);
        }
        final String[] behaviours = {
            "Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"
        };
        return split.put("behavior", behaviours[random.nextInt(behaviours.length)])
                .put("invert", once(4));
    }

    private ObjectNode postProcessor() {
        return switch (random.nextInt(6)) {
            case 0 -> byteLevel();
            case 1 -> template();
            case 2 -> {
                final ObjectNode sequence = of("Sequence");
                final ArrayNode steps = sequence.putArray("processors");
                for (int n = random.nextInt(3); n > 0; n--) {
                    steps.add(once(3) ? template() : byteLevel());
                }
                yield sequence;
            }
            case 3 -> {
                final ObjectNode roberta = of("RobertaProcessing");
                roberta.putArray("sep").add("</s>").add(random.nextInt(300));
                roberta.putArray("cls").add("<s>").add(random.nextInt(300));
                yield roberta.put("trim_offsets", true).put("add_prefix_space", once(2));
            }
            case 4 -> {
                final ObjectNode bert = of("BertProcessing");
                bert.putArray("sep").add("</s>").add(random.nextInt(300));
                bert.putArray("cls").add("<s>").add(random.nextInt(300));
                yield bert;
            }
            default -> null;
        };
    }

    private ObjectNode template() {
        final ObjectNode template = of("TemplateProcessing");
        final ArrayNode single = template.putArray("single");
        final ArrayNode pair = template.putArray("pair");
        for (int n = random.nextInt(3); n > 0; n--) {
            special(single);
        }
        for (int n = once(20) ? random.nextInt(3) : 1; n > 0; n--) {
            single.addObject()
                    .putObject("Sequence")
                    .put("id", once(30) ? "B" : "A")
                    .put("type_id", 0);
        }
        for (int n = random.nextInt(3); n > 0; n--) {
            special(single);
        }
        pair.addObject().putObject("Sequence").put("id", "A").put("type_id", 0);
        pair.addObject().putObject("Sequence").put("id", "B").put("type_id", 1);
        final ObjectNode tokens = template.putObject("special_tokens");
        for (String name : new String[] {"X", "Y"}) {
            final ObjectNode token = tokens.putObject(name).put("id", name);
            final ArrayNode ids = token.putArray("ids");
            final ArrayNode texts = token.putArray("tokens");
            for (int n = 1 + random.nextInt(2); n > 0; n--) {
                ids.add(random.nextInt(300));
                texts.add(name);
            }
        }
        return template;
    }

    private void special(ArrayNode single) {
        single.addObject()
                .putObject("SpecialToken")
                .put("id", random.nextBoolean() ? "X" : "Y")
                .put("type_id", 0);
    }
}
