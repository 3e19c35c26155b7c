package io.kvasir.prompt.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Loads tokenizers. */
public final class Tokenizers {
    private static final Logger LOG = LoggerFactory.getLogger(Tokenizers.class);

    private Tokenizers() {}

    /**
     * Loads a tokenizer: the own byte-level BPE where it implements everything that the file asks
     * for, else the Hugging Face library by way of the DJL. Nothing is fetched from a network.
     *
     * @param modelDirectoryOrFile a {@code tokenizer.json} or the folder that holds one
     * @return a tokenizer that many threads may use
     * @throws TokenizerException if the file cannot be read, or if the own implementation does not
     *     support it and the library fails as well; the message says why for both
     */
    public static Tokenizer load(Path modelDirectoryOrFile) {
        final Path file =
                Files.isDirectory(modelDirectoryOrFile)
                        ? modelDirectoryOrFile.resolve("tokenizer.json")
                        : modelDirectoryOrFile;
        try {
            return load(ModelFile.read(file), file.toString(), MoreTokens.NONE);
        } catch (IOException e) {
            throw new TokenizerException("cannot read " + file + ": " + FileFailure.words(e), e);
        }
    }

    /**
     * The same for a file's content.
     *
     * @param json content of a {@code tokenizer.json}
     * @param name of the file, for messages
     * @param moreTokens what other files say of added tokens
     * @return the tokenizer; to be closed
     * @throws TokenizerException as above
     */
    public static Tokenizer load(byte[] json, String name, MoreTokens moreTokens) {
        final UnsupportedTokenizerException unsupported;
        try {
            return TokenizerJson.read(new ByteArrayInputStream(json), moreTokens);
        } catch (IOException e) {
            throw new TokenizerException("cannot read " + name + ": " + FileFailure.words(e), e);
        } catch (UnsupportedTokenizerException e) {
            unsupported = e;
        }
        try {
            final Tokenizer library = new DjlTokenizer(withTokens(json, moreTokens));
            LOG.info(
                    "{}: using the DJL tokenizers library, because the built-in byte-level BPE does"
                            + " not implement: {}",
                    name,
                    unsupported.getMessage());
            return library;
        } catch (IOException e) {
            e.addSuppressed(unsupported);
            throw new TokenizerException(
                    name
                            + ": the built-in byte-level BPE does not implement: "
                            + unsupported.getMessage()
                            + "; and "
                            + e.getMessage(),
                    e);
        }
    }

    /**
     * Appends added tokens in the file's own form: those that the file lacks, and those that
     * replace one of its own, of which the library takes the last.
     */
    private static byte[] withTokens(byte[] json, MoreTokens moreTokens) throws IOException {
        if (moreTokens.equals(MoreTokens.NONE)) {
            return json;
        }
        final ObjectMapper mapper = new ObjectMapper();
        final ObjectNode file = (ObjectNode) mapper.readTree(json);
        final ArrayNode added = file.withArray("added_tokens");
        final Map<String, Integer> known = new HashMap<>();
        final JsonNode vocabulary = file.path("model").path("vocab");
        int next = vocabulary.size();
        for (JsonNode token : added) {
            known.put(token.path("content").asText(), token.path("id").asInt());
            next = Math.max(next, token.path("id").asInt() + 1);
        }
        final List<JsonNode> more = new ArrayList<>(moreTokens.replacing());
        final int replacing = more.size();
        more.addAll(moreTokens.further());
        for (int i = 0; i < more.size(); i++) {
            final String content = more.get(i).path("content").asText();
            final Integer before = known.get(content);
            if (before != null && i >= replacing) {
                continue;
            }
            final JsonNode own = vocabulary.path(content);
            final int id = before != null ? before : own.isInt() ? own.asInt() : next++;
            known.put(content, id);
            append(added, id, more.get(i));
        }
        return mapper.writeValueAsBytes(file);
    }

    private static void append(ArrayNode added, int id, JsonNode token) {
        final boolean special = token.path("special").asBoolean();
        added.addObject()
                .put("id", id)
                .put("content", token.path("content").asText())
                .put("single_word", token.path("single_word").asBoolean())
                .put("lstrip", token.path("lstrip").asBoolean())
                .put("rstrip", token.path("rstrip").asBoolean())
                .put("normalized", token.path("normalized").asBoolean(!special))
                .put("special", special);
    }
}
