package io.kvasir.prompt.tokenizer;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.io.InputStream;
import java.text.Normalizer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads a Hugging Face {@code tokenizer.json} into a {@link ByteLevelBpe}. The vocabulary and the
 * merges are streamed, the rest is read as a tree. Every setting that would change ids and is not
 * implemented is refused by name.
 */
final class TokenizerJson {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    /** The split of GPT-2, which a ByteLevel pre-tokenizer applies unless set otherwise. */
    private static final String GPT2_PATTERN =
            "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

    private final ObjectNode settings = JsonNodeFactory.instance.objectNode();
    private final ObjectNode model = JsonNodeFactory.instance.objectNode();
    private final Map<String, Integer> vocabulary = new HashMap<>();
    private final List<String> mergeLefts = new ArrayList<>();
    private final List<String> mergeRights = new ArrayList<>();

    private TokenizerJson() {}

    /**
     * Builds the tokenizer.
     *
     * @param json the file
     * @param moreTokens what other files say of added tokens
     * @throws IOException if it is not readable JSON of this format
     * @throws UnsupportedTokenizerException if it asks for something that is not implemented
     */
    static ByteLevelBpe read(InputStream json, MoreTokens moreTokens)
            throws IOException, UnsupportedTokenizerException {
        final TokenizerJson file = new TokenizerJson();
        file.parse(json);
        return file.build(moreTokens);
    }

    private void parse(InputStream json) throws IOException, UnsupportedTokenizerException {
        try (JsonParser parser = MAPPER.createParser(json)) {
            if (parser.nextToken() != JsonToken.START_OBJECT) {
                throw new IOException("tokenizer.json is not a JSON object");
            }
            while (parser.nextToken() == JsonToken.FIELD_NAME) {
                final String field = parser.currentName();
                final JsonToken value = parser.nextToken();
                if (field.equals("model") && value == JsonToken.START_OBJECT) {
                    parseModel(parser);
                } else {
                    settings.set(field, MAPPER.readTree(parser));
                }
            }
        }
    }

    private void parseModel(JsonParser parser) throws IOException, UnsupportedTokenizerException {
        while (parser.nextToken() == JsonToken.FIELD_NAME) {
            final String field = parser.currentName();
            final JsonToken value = parser.nextToken();
            if (field.equals("vocab") && value == JsonToken.START_OBJECT) {
                while (parser.nextToken() == JsonToken.FIELD_NAME) {
                    final String token = parser.currentName();
                    parser.nextToken();
                    vocabulary.put(token, parser.getIntValue());
                }
            } else if (field.equals("merges") && value == JsonToken.START_ARRAY) {
                parseMerges(parser);
            } else if (field.equals("vocab")) {
                throw new UnsupportedTokenizerException("model vocabulary that is not an object");
            } else {
                model.set(field, MAPPER.readTree(parser));
            }
        }
    }

    private void parseMerges(JsonParser parser) throws IOException {
        JsonToken token = parser.nextToken();
        while (token != JsonToken.END_ARRAY) {
            if (token == JsonToken.START_ARRAY) {
                mergeLefts.add(parser.nextTextValue());
                mergeRights.add(parser.nextTextValue());
                if (parser.nextToken() != JsonToken.END_ARRAY) {
                    throw new IOException("merge " + mergeLefts.size() + " is not a pair");
                }
                token = parser.nextToken();
            } else {
                final String pair = parser.getText();
                token = parser.nextToken();
                if (pair.startsWith("#version")) {
                    continue; // the head of a list that was a file of its own
                }
                final int space = pair.indexOf(' ');
                if (space < 0 || pair.indexOf(' ', space + 1) >= 0) {
                    throw new IOException("merge \"" + pair + "\" is not two tokens");
                }
                mergeLefts.add(pair.substring(0, space));
                mergeRights.add(pair.substring(space + 1));
            }
        }
    }

    private ByteLevelBpe build(MoreTokens moreTokens)
            throws IOException, UnsupportedTokenizerException {
        final BpeModel bpe = bpe();
        final Normalizer.Form form = normalForm(settings.get("normalizer"));
        final TextNormalizer normalizer = form == null ? null : new TextNormalizer(form);
        final Splitter splitter = splitter();
        requireByteLevelDecoder();
        final Map<String, Integer> ids = new HashMap<>(vocabulary);
        final List<AddedToken> added = addedTokens(ids, moreTokens);
        final PostProcessor post = postProcessor(settings.get("post_processor"));
        return new ByteLevelBpe(bpe, splitter, normalizer, added, post, ids);
    }

    private BpeModel bpe() throws IOException, UnsupportedTokenizerException {
        final String type = model.path("type").asText("BPE");
        if (!type.equals("BPE")) {
            throw new UnsupportedTokenizerException("model type " + type);
        }
        if (model.path("dropout").asDouble(0) != 0) {
            throw new UnsupportedTokenizerException("model dropout " + model.get("dropout"));
        }
        for (String affix : new String[] {"continuing_subword_prefix", "end_of_word_suffix"}) {
            if (!model.path(affix).asText("").isEmpty() && !model.path(affix).isNull()) {
                throw new UnsupportedTokenizerException("model " + affix);
            }
        }
        final int[] idOfByte = new int[256];
        int missing = 0;
        for (int b = 0; b < 256; b++) {
            final Integer id = vocabulary.get(String.valueOf(ByteAlphabet.characterOf(b)));
            idOfByte[b] = id == null ? -1 : id;
            missing += id == null ? 1 : 0;
        }
        if (missing > 0
                && (model.hasNonNull("unk_token") || model.path("byte_fallback").asBoolean())) {
            throw new UnsupportedTokenizerException(
                    "unknown token or byte fallback for " + missing + " bytes without a token");
        }
        final MergeTable merges = new MergeTable(mergeLefts.size());
        for (int rank = 0; rank < mergeLefts.size(); rank++) {
            final String left = mergeLefts.get(rank);
            final String right = mergeRights.get(rank);
            merges.put(idInMerge(left), idInMerge(right), rank, idInMerge(left + right));
        }
        return new BpeModel(
                vocabulary, idOfByte, merges, model.path("ignore_merges").asBoolean(false));
    }

    private int idInMerge(String token) throws IOException {
        final Integer id = vocabulary.get(token);
        if (id == null) {
            throw new IOException(
                    "a merge names \"" + token + "\", which is not in the vocabulary");
        }
        return id;
    }

    private static Normalizer.Form normalForm(JsonNode normalizer)
            throws UnsupportedTokenizerException {
        if (absent(normalizer)) {
            return null;
        }
        final String type = normalizer.path("type").asText();
        return switch (type) {
            case "NFC", "NFD", "NFKC", "NFKD" -> Normalizer.Form.valueOf(type);
            case "Sequence" -> onlyForm(normalizer.path("normalizers"));
            default -> throw new UnsupportedTokenizerException("normalizer " + type);
        };
    }

    private static Normalizer.Form onlyForm(JsonNode steps) throws UnsupportedTokenizerException {
        Normalizer.Form form = null;
        for (JsonNode step : steps) {
            final Normalizer.Form next = normalForm(step);
            if (form != null && next != null) {
                throw new UnsupportedTokenizerException("two normalizers in a sequence");
            }
            form = form == null ? next : form;
        }
        return form;
    }

    private Splitter splitter() throws UnsupportedTokenizerException {
        final List<JsonNode> steps = new ArrayList<>();
        flatten(settings.get("pre_tokenizer"), "pretokenizers", steps);
        Splitter splitter = null;
        for (int i = 0; i < steps.size(); i++) {
            final JsonNode step = steps.get(i);
            final String type = step.path("type").asText();
            final boolean last = i == steps.size() - 1;
            if (last != type.equals("ByteLevel")) {
                throw new UnsupportedTokenizerException(
                        last
                                ? "pre-tokenizer that ends with " + type + " instead of ByteLevel"
                                : "pre-tokenizer ByteLevel before another one");
            }
            for (Splitter next : stepsOf(step, type)) {
                splitter = splitter == null ? next : splitter.then(next);
            }
        }
        if (steps.isEmpty()) {
            throw new UnsupportedTokenizerException("no pre-tokenizer");
        }
        return splitter == null
                ? (text, start, end, sink) -> sink.piece(text, start, end)
                : splitter;
    }

    private static List<Splitter> stepsOf(JsonNode step, String type)
            throws UnsupportedTokenizerException {
        return switch (type) {
            case "ByteLevel" -> byteLevel(step);
            case "Split" -> List.of(split(step));
            case "Digits" ->
                    List.of(new DigitSplitter(step.path("individual_digits").asBoolean(false)));
            default -> throw new UnsupportedTokenizerException("pre-tokenizer " + type);
        };
    }

    private static List<Splitter> byteLevel(JsonNode step) throws UnsupportedTokenizerException {
        final List<Splitter> parts = new ArrayList<>(2);
        if (step.path("add_prefix_space").asBoolean(true)) {
            parts.add(new SpacePrefixer());
        }
        if (step.path("use_regex").asBoolean(true)) {
            parts.add(
                    new PatternSplitter(
                            SplitPattern.compile(GPT2_PATTERN), SplitBehaviour.ISOLATED, false));
        }
        return parts;
    }

    private static Splitter split(JsonNode step) throws UnsupportedTokenizerException {
        final JsonNode pattern = step.path("pattern");
        return new PatternSplitter(
                pattern.has("Regex")
                        ? SplitPattern.compile(pattern.get("Regex").asText())
                        : SplitPattern.literal(pattern.path("String").asText()),
                SplitBehaviour.parse(step.path("behavior").asText()),
                step.path("invert").asBoolean(false));
    }

    private void requireByteLevelDecoder() throws UnsupportedTokenizerException {
        final List<JsonNode> steps = new ArrayList<>();
        flatten(settings.get("decoder"), "decoders", steps);
        if (steps.size() != 1 || !steps.getFirst().path("type").asText().equals("ByteLevel")) {
            throw new UnsupportedTokenizerException("decoder other than ByteLevel");
        }
    }

    private List<AddedToken> addedTokens(Map<String, Integer> ids, MoreTokens moreTokens)
            throws UnsupportedTokenizerException {
        final AddedTokenList added = new AddedTokenList(ids);
        for (JsonNode token : settings.path("added_tokens")) {
            added.addOfFile(token);
        }
        for (JsonNode token : moreTokens.replacing()) {
            added.replace(token);
        }
        for (JsonNode token : moreTokens.further()) {
            added.add(token);
        }
        return added.all();
    }

    static PostProcessor postProcessor(JsonNode root) throws UnsupportedTokenizerException {
        final List<JsonNode> steps = new ArrayList<>();
        flatten(root, "processors", steps);
        PostProcessor result = PostProcessor.NONE;
        for (JsonNode step : steps) {
            final String type = step.path("type").asText();
            if (type.equals("ByteLevel")) {
                continue; // changes offsets, not ids
            }
            if (result != PostProcessor.NONE) {
                throw new UnsupportedTokenizerException("two post-processors that add tokens");
            }
            result =
                    switch (type) {
                        case "TemplateProcessing" -> template(step);
                        case "BertProcessing", "RobertaProcessing" ->
                                new PostProcessor(
                                        new int[] {step.path("cls").path(1).asInt()},
                                        new int[] {step.path("sep").path(1).asInt()});
                        default ->
                                throw new UnsupportedTokenizerException("post-processor " + type);
                    };
        }
        return result;
    }

    private static PostProcessor template(JsonNode step) throws UnsupportedTokenizerException {
        final IdBuffer before = new IdBuffer(1);
        final IdBuffer after = new IdBuffer(1);
        boolean seen = false;
        for (JsonNode piece : step.path("single")) {
            if (piece.has("Sequence")) {
                if (seen || !piece.path("Sequence").path("id").asText().equals("A")) {
                    throw new UnsupportedTokenizerException("template that repeats the text");
                }
                seen = true;
                continue;
            }
            final String name = piece.path("SpecialToken").path("id").asText();
            final JsonNode ids = step.path("special_tokens").path(name).path("ids");
            if (!(ids instanceof ArrayNode)) {
                throw new UnsupportedTokenizerException("template with unknown token " + name);
            }
            for (JsonNode id : ids) {
                (seen ? after : before).add(id.asInt());
            }
        }
        if (!seen) {
            throw new UnsupportedTokenizerException("template without the text");
        }
        return new PostProcessor(before.toArray(), after.toArray());
    }

    private static void flatten(JsonNode node, String children, List<JsonNode> out) {
        if (absent(node)) {
            return;
        }
        if (node.path("type").asText().equals("Sequence")) {
            node.path(children).forEach(child -> flatten(child, children, out));
        } else {
            out.add(node);
        }
    }

    private static boolean absent(JsonNode node) {
        return node == null || node.isNull() || node.isMissingNode();
    }
}
