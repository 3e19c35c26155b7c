package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What {@code special_tokens_map.json} and {@code added_tokens.json} say of tokens. The reference
 * reads these older files only where the configuration has no {@code added_tokens_decoder}.
 *
 * @param config the configuration, with what the map says in place of its own
 * @param added tokens of {@code added_tokens.json} in the order of their ids, in the form of {@link
 *     io.kvasir.prompt.tokenizer.MoreTokens}
 */
record OlderTokens(JsonNode config, List<JsonNode> added) {
    private static final String EXTRA = "extra_special_tokens";
    private static final String ADDITIONAL = "additional_special_tokens";

    static OlderTokens read(Path folder, JsonNode config) throws IOException {
        if (config.has("added_tokens_decoder")) {
            return new OlderTokens(config, List.of());
        }
        final JsonNode map = ModelFiles.json(folder.resolve("special_tokens_map.json"));
        final ObjectNode merged = JsonNodeFactory.instance.objectNode();
        config.properties().forEach(entry -> merged.set(entry.getKey(), entry.getValue()));
        for (String name : ModelFiles.NAMED_TOKENS) {
            if (map.has(name)) {
                merged.set(name, map.get(name));
            }
        }
        if (map.has(ADDITIONAL) && !hasList(config)) {
            merged.set(ADDITIONAL, map.get(ADDITIONAL));
        }
        final Set<String> special = new HashSet<>(ModelFiles.named(merged).values());
        config.path(EXTRA).forEach(token -> special.add(token.asText()));
        config.path(ADDITIONAL).forEach(token -> special.add(token.asText()));
        final JsonNode added = ModelFiles.json(folder.resolve("added_tokens.json"));
        return new OlderTokens(merged, byId(added, special));
    }

    /** Whether the configuration has a list of further tokens, which wins over the map's. */
    private static boolean hasList(JsonNode config) {
        final JsonNode extra = config.path(EXTRA); // a list, or by name
        return extra.isObject()
                ? extra.isEmpty() && config.has(ADDITIONAL)
                : config.has(EXTRA) || config.has(ADDITIONAL);
    }

    private static List<JsonNode> byId(JsonNode ids, Set<String> special) {
        final List<Map.Entry<String, JsonNode>> entries = new ArrayList<>(ids.properties());
        entries.sort((a, b) -> Integer.compare(a.getValue().asInt(), b.getValue().asInt()));
        return entries.stream()
                .<JsonNode>map(
                        entry ->
                                JsonNodeFactory.instance
                                        .objectNode()
                                        .put("content", entry.getKey())
                                        .put("special", special.contains(entry.getKey())))
                .toList();
    }
}
