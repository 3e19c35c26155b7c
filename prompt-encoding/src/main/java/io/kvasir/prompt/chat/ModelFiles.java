package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.tokenizer.ModelFile;
import io.kvasir.prompt.tokenizer.MoreTokens;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * The tokenizer files of a model, read but not yet interpreted.
 *
 * @param name where they are, for messages
 * @param tokenizer content of {@code tokenizer.json}
 * @param config {@code tokenizer_config.json}, empty if there is none, with what older files say
 * @param templates chat templates
 * @param specialTokens {@code bos_token} and the like with their text
 * @param olderTokens added tokens of older files that may be missing in {@code tokenizer}
 */
record ModelFiles(
        String name,
        TokenizerFile tokenizer,
        JsonNode config,
        TemplateFiles templates,
        Map<String, String> specialTokens,
        List<JsonNode> olderTokens) {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final JsonNode NO_FLAGS = JsonNodeFactory.instance.objectNode();
    static final List<String> NAMED_TOKENS =
            List.of(
                    "bos_token",
                    "eos_token",
                    "unk_token",
                    "sep_token",
                    "pad_token",
                    "cls_token",
                    "mask_token");

    /** Content of a {@code tokenizer.json}. */
    static final class TokenizerFile {
        private final byte[] json;

        TokenizerFile(byte[] json) {
            this.json = json;
        }

        byte[] json() {
            return json;
        }
    }

    /** Reads a folder, or a {@code tokenizer.json} and what lies beside it. */
    static ModelFiles read(Path folderOrFile) throws IOException {
        final boolean folder = Files.isDirectory(folderOrFile);
        final Path file = folder ? folderOrFile.resolve("tokenizer.json") : folderOrFile;
        final Path beside = file.toAbsolutePath().getParent();
        final OlderTokens older =
                OlderTokens.read(beside, json(beside.resolve("tokenizer_config.json")));
        final JsonNode config = older.config();
        return new ModelFiles(
                folderOrFile.toString(),
                new TokenizerFile(ModelFile.read(file)),
                config,
                TemplateFiles.read(beside, config),
                named(config),
                older.added());
    }

    /** Takes files that were read already; {@code config} may hold the templates. */
    static ModelFiles of(String name, byte[] tokenizer, byte[] config) throws IOException {
        final JsonNode tree = MAPPER.readTree(config);
        return new ModelFiles(
                name,
                new TokenizerFile(tokenizer),
                tree,
                TemplateFiles.of(tree),
                named(tree),
                List.of());
    }

    /** An object without members where there is no such file. */
    static JsonNode json(Path file) throws IOException {
        return Files.exists(file)
                ? MAPPER.readTree(ModelFile.read(file))
                : JsonNodeFactory.instance.objectNode();
    }

    /** {@code bos_token} and the like with their text. */
    static Map<String, String> named(JsonNode config) {
        final Map<String, String> tokens = new LinkedHashMap<>();
        for (String name : NAMED_TOKENS) {
            final JsonNode given = config.path(name);
            final String text =
                    given.isObject() ? given.path("content").textValue() : given.textValue();
            if (text != null) {
                tokens.put(name, text);
            }
        }
        return tokens;
    }

    /** SHA-256 of all that says which ids a text has: equal tokenizers have equal ones. */
    byte[] tokenizerIdentity() {
        final MessageDigest sha = MemoView.sha256();
        sha.update(tokenizer.json());
        final MoreTokens more = moreTokens();
        for (List<JsonNode> tokens : List.of(more.replacing(), more.further())) {
            sha.update((byte) 1); // no byte of JSON, as the zero below
            for (JsonNode token : tokens) {
                sha.update((byte) 0);
                sha.update(token.toString().getBytes(StandardCharsets.UTF_8));
            }
        }
        return sha.digest();
    }

    /**
     * What the configuration says of added tokens: those with ids, in the order of these, hold in
     * place of the tokenizer's own; special ones are added where they are missing. Which ids they
     * really get the tokenizer says, as in the engines.
     */
    MoreTokens moreTokens() {
        final SortedMap<Integer, JsonNode> byId = new TreeMap<>();
        config.path("added_tokens_decoder")
                .properties()
                .forEach(
                        entry -> {
                            final ObjectNode token = entry.getValue().deepCopy();
                            token.remove("id");
                            byId.put(Integer.parseInt(entry.getKey()), token);
                        });
        final List<JsonNode> further = new ArrayList<>(olderTokens);
        specialTokens.forEach(
                (name, content) -> {
                    final JsonNode given = config.path(name);
                    further.add(special(content, given.isObject() ? given : NO_FLAGS));
                });
        addModelsOwn(further);
        return new MoreTokens(new ArrayList<>(byId.values()), further);
    }

    /** Adds those that only this model has, in the order in which the reference adds them. */
    private void addModelsOwn(List<JsonNode> tokens) {
        final List<JsonNode> texts = new ArrayList<>();
        for (Map.Entry<String, JsonNode> entry : config.properties()) {
            if (entry.getKey().endsWith("_token") && !NAMED_TOKENS.contains(entry.getKey())) {
                addSpecial(entry.getValue(), entry.getValue().isTextual() ? texts : tokens);
            }
        }
        tokens.addAll(texts);
        final JsonNode extra = config.path("extra_special_tokens"); // a list, or by name
        extra.forEach(token -> addSpecial(token, tokens));
        if (!extra.isArray() || extra.isEmpty()) {
            config.path("additional_special_tokens").forEach(token -> addSpecial(token, tokens));
        }
    }

    private static void addSpecial(JsonNode given, List<JsonNode> tokens) {
        if (given.isTextual()) {
            tokens.add(special(given.textValue(), NO_FLAGS));
        } else if (given.path("__type").asText().equals("AddedToken")) {
            tokens.add(special(given.path("content").asText(), given));
        }
    }

    private static JsonNode special(String content, JsonNode flags) {
        return JsonNodeFactory.instance
                .objectNode()
                .put("content", content)
                .put("special", true)
                .put("normalized", flags.path("normalized").asBoolean())
                .put("lstrip", flags.path("lstrip").asBoolean())
                .put("rstrip", flags.path("rstrip").asBoolean())
                .put("single_word", flags.path("single_word").asBoolean());
    }
}
