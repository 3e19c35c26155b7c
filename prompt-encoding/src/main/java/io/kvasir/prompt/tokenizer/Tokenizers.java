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
import java.util.HashSet;
import java.util.List;
import java.util.Set;

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
            return load(Files.readAllBytes(file), file.toString(), List.of());
        } catch (IOException e) {
            throw new TokenizerException("cannot read " + file + ": " + e, e);
        }
    }

    /**
     * The same for a file's content.
     *
     * @param json content of a {@code tokenizer.json}
     * @param name of the file, for messages
     * @param moreTokens added tokens of other files, in the form that {@code added_tokens} has them
     * @return the tokenizer; to be closed
     * @throws TokenizerException as above
     */
    public static Tokenizer load(byte[] json, String name, List<JsonNode> moreTokens) {
        final UnsupportedTokenizerException unsupported;
        try {
            return TokenizerJson.read(new ByteArrayInputStream(json), moreTokens);
        } catch (IOException e) {
            throw new TokenizerException("cannot read " + name + ": " + e.getMessage(), e);
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

    /** Appends added tokens that the file lacks, in its own form. */
    private static byte[] withTokens(byte[] json, List<JsonNode> moreTokens) throws IOException {
        if (moreTokens.isEmpty()) {
            return json;
        }
        final ObjectMapper mapper = new ObjectMapper();
        final ObjectNode file = (ObjectNode) mapper.readTree(json);
        final ArrayNode added = file.withArray("added_tokens");
        final Set<String> known = new HashSet<>();
        int next = file.path("model").path("vocab").size();
        for (JsonNode token : added) {
            known.add(token.path("content").asText());
            next = Math.max(next, token.path("id").asInt() + 1);
        }
        for (JsonNode token : moreTokens) {
            final String content = token.path("content").asText();
            if (!known.add(content)) {
                continue;
            }
            final JsonNode own = file.path("model").path("vocab").path(content);
            final boolean special = token.path("special").asBoolean();
            added.addObject()
                    .put("id", own.isInt() ? own.asInt() : next++)
                    .put("content", content)
                    .put("single_word", token.path("single_word").asBoolean())
                    .put("lstrip", token.path("lstrip").asBoolean())
                    .put("rstrip", token.path("rstrip").asBoolean())
                    .put("normalized", token.path("normalized").asBoolean(!special))
                    .put("special", special);
        }
        return mapper.writeValueAsBytes(file);
    }
}
