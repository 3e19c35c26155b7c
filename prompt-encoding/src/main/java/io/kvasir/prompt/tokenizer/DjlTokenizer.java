package io.kvasir.prompt.tokenizer;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/**
 * The Hugging Face library itself, through the DJL's native binding: for the kinds of tokenizer
 * that {@link ByteLevelBpe} does not implement. Slower by the copies that the binding makes.
 */
final class DjlTokenizer implements Tokenizer {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    private final HuggingFaceTokenizer library;
    private final JsonNode vocabulary;
    private final JsonNode addedTokens;
    private final PostProcessor post;
    private final int idCount;
    private volatile String[] contents; // made when they are first asked for

    /**
     * Loads a tokenizer.
     *
     * @param json content of {@code tokenizer.json}
     * @throws IOException if the library refuses the file, would end the process at some text, or
     *     cannot be loaded
     */
    DjlTokenizer(byte[] json) throws IOException {
        final JsonNode tree = MAPPER.readTree(json);
        refuseSwallowedTokens(tree.path("added_tokens"));
        useLocalFilesOnly();
        library = open(json);
        vocabulary = tree.path("model").path("vocab");
        addedTokens = tree.path("added_tokens");
        post = postProcessor(tree.get("post_processor"));
        int count = vocabulary.size();
        for (JsonNode token : addedTokens) {
            count = Math.max(count, token.path("id").asInt() + 1);
        }
        idCount = count;
    }

    /**
     * A text in which one token swallows the white space that another one consists of ends the
     * process: where the other swallows what is before it, the library cuts a text that ends before
     * it begins.
     */
    private static void refuseSwallowedTokens(JsonNode addedTokens) throws IOException {
        JsonNode swallowing = null;
        JsonNode swallowed = null;
        for (JsonNode token : addedTokens) {
            final boolean left = token.path("lstrip").asBoolean();
            final boolean right = token.path("rstrip").asBoolean();
            if (right) {
                swallowing = token;
            } else if (left && isWhiteSpace(token.path("content").asText())) {
                swallowed = token;
            }
        }
        if (swallowing != null && swallowed != null) {
            throw new IOException(
                    "the DJL tokenizers library ends the process at some texts where added token "
                            + swallowed.path("id").asText()
                            + " is white space with lstrip and token "
                            + swallowing.path("id").asText()
                            + " has rstrip");
        }
    }

    private static boolean isWhiteSpace(String text) {
        return text.codePoints()
                .allMatch(c -> Character.isWhitespace(c) || Character.isSpaceChar(c) || c == 0x85);
    }

    /** What the library adds; nothing where that is not known, which counts for cuts alone. */
    private static PostProcessor postProcessor(JsonNode json) {
        try {
            return TokenizerJson.postProcessor(json);
        } catch (UnsupportedTokenizerException e) {
            return PostProcessor.NONE;
        }
    }

    /** The native library is unpacked below the user's (or the temporary) folder, never fetched. */
    private static void useLocalFilesOnly() {
        setIfAbsent("ai.djl.offline", "true");
        setIfAbsent("OPT_OUT_TRACKING", "true");
        if (System.getenv("ENGINE_CACHE_DIR") == null && System.getenv("DJL_CACHE_DIR") == null) {
            final Path home = Path.of(System.getProperty("user.home", ""));
            final boolean usable = home.isAbsolute() && home.toFile().canWrite();
            final Path base =
                    usable ? home.resolve(".cache") : Path.of(System.getProperty("java.io.tmpdir"));
            setIfAbsent("ENGINE_CACHE_DIR", base.resolve("kvasir-tokenizers").toString());
        }
    }

    private static void setIfAbsent(String property, String value) {
        if (System.getProperty(property) == null && System.getenv(property) == null) {
            System.setProperty(property, value);
        }
    }

    private static HuggingFaceTokenizer open(byte[] json) throws IOException {
        try {
            return HuggingFaceTokenizer.newInstance(
                    new ByteArrayInputStream(json),
                    Map.of("truncation", "false", "padding", "false", "addSpecialTokens", "true"));
        } catch (RuntimeException | LinkageError e) {
            throw new IOException(
                    "the DJL tokenizers library failed"
                            + " (native files unpack to ENGINE_CACHE_DIR="
                            + System.getProperty("ENGINE_CACHE_DIR")
                            + "): "
                            + e,
                    e);
        }
    }

    @Override
    public int[] encode(String text, boolean addSpecialTokens) {
        final long[] ids = library.encode(text, addSpecialTokens, false).getIds();
        final int[] narrow = new int[ids.length];
        for (int i = 0; i < ids.length; i++) {
            narrow[i] = (int) ids[i];
        }
        return narrow;
    }

    @Override
    public int[] keepLast(int[] ids, int most) {
        return post.keepLast(ids, most);
    }

    @Override
    public String decode(int[] ids, boolean skipSpecialTokens) {
        final long[] wide = new long[ids.length];
        for (int i = 0; i < ids.length; i++) {
            wide[i] = ids[i];
        }
        return library.decode(wide, skipSpecialTokens);
    }

    @Override
    public int idOf(String token) {
        for (JsonNode added : addedTokens) {
            if (added.path("content").asText().equals(token)) {
                return added.path("id").asInt();
            }
        }
        if (vocabulary.isObject()) {
            return vocabulary.path(token).asInt(NO_TOKEN);
        }
        for (int id = 0; id < vocabulary.size(); id++) { // Unigram: [[token, score], ...]
            if (vocabulary.get(id).path(0).asText().equals(token)) {
                return id;
            }
        }
        return NO_TOKEN;
    }

    @Override
    public String contentOf(int id) {
        if (contents == null) {
            contents = contents(vocabulary, addedTokens, idCount);
        }
        return id < 0 || id >= idCount ? null : contents[id];
    }

    private static String[] contents(JsonNode vocabulary, JsonNode addedTokens, int idCount) {
        final String[] all = new String[idCount];
        if (vocabulary.isObject()) {
            vocabulary
                    .properties()
                    .forEach(
                            token -> {
                                final int id = token.getValue().asInt(NO_TOKEN);
                                if (id >= 0 && id < idCount) {
                                    all[id] = token.getKey();
                                }
                            });
        } else {
            for (int id = 0; id < vocabulary.size(); id++) { // Unigram: [[token, score], ...]
                all[id] = vocabulary.get(id).path(0).asText();
            }
        }
        for (JsonNode added : addedTokens) {
            all[added.path("id").asInt()] = added.path("content").asText();
        }
        return all;
    }

    @Override
    public boolean isNative() {
        return true;
    }

    @Override
    public int idCount() {
        return idCount;
    }

    @Override
    public void close() {
        library.close();
    }
}
