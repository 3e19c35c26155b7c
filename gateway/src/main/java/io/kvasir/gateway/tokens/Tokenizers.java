package io.kvasir.gateway.tokens;

import com.fasterxml.jackson.databind.JsonNode;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

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

    /** As above for a file's content; {@code moreTokens} as in {@link TokenizerJson#read}. */
    static Tokenizer load(byte[] json, String name, List<JsonNode> moreTokens) {
        final UnsupportedTokenizerException unsupported;
        try {
            return TokenizerJson.read(new ByteArrayInputStream(json), moreTokens);
        } catch (IOException e) {
            throw new TokenizerException("cannot read " + name + ": " + e.getMessage(), e);
        } catch (UnsupportedTokenizerException e) {
            unsupported = e;
        }
        try {
            final Tokenizer library = new DjlTokenizer(json);
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
}
