package io.kvasir.prompt.chat;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.prompt.tokenizer.ModelFile;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The chat templates of a model.
 *
 * @param byName those of its tokenizer; the usual one is called {@value #DEFAULT}
 * @param ofProcessor of a model with a processor (for images and the like) the template of that,
 *     which chats without tools have in place of the tokenizer's; null where it has none of its own
 */
record TemplateFiles(Map<String, String> byName, String ofProcessor) {
    static final String DEFAULT = "default";

    private static final String SUFFIX = ".jinja";
    private static final String PROCESSOR = "processor_config.json";
    private static final List<String> PROCESSORS =
            List.of(PROCESSOR, "preprocessor_config.json", "video_preprocessor_config.json");

    /** Reads those in a folder; files of the tokenizer's templates win over its configuration. */
    static TemplateFiles read(Path folder, JsonNode config) throws IOException {
        final Map<String, String> files = new LinkedHashMap<>();
        final Path single = folder.resolve("chat_template" + SUFFIX);
        if (Files.exists(single)) {
            files.put(DEFAULT, ModelFile.text(single));
        }
        final Map<String, String> more = additional(folder);
        files.putAll(more);
        final Map<String, String> own = files.isEmpty() ? inline(config) : files;
        final JsonNode legacy = ModelFiles.json(folder.resolve("chat_template.json"));
        // beside the legacy file the reference refuses further ones: it loads no processor then
        final boolean refused = !legacy.isEmpty() && !more.isEmpty();
        return new TemplateFiles(
                own.isEmpty() ? inline(legacy) : own,
                refused ? null : readOfProcessor(folder, legacy));
    }

    /** Those in a configuration alone. */
    static TemplateFiles of(JsonNode config) {
        return new TemplateFiles(inline(config), null);
    }

    private static Map<String, String> additional(Path folder) throws IOException {
        final Map<String, String> more = new LinkedHashMap<>();
        final Path files = folder.resolve("additional_chat_templates");
        if (Files.isDirectory(files)) {
            try (DirectoryStream<Path> entries = Files.newDirectoryStream(files, "*" + SUFFIX)) {
                for (Path entry : entries) {
                    final String name = entry.getFileName().toString();
                    more.put(
                            name.substring(0, name.length() - SUFFIX.length()),
                            ModelFile.text(entry));
                }
            }
        }
        return more;
    }

    /** A processor takes that of its configuration, then the legacy file, then the tokenizer's. */
    private static String readOfProcessor(Path folder, JsonNode legacy) throws IOException {
        if (PROCESSORS.stream().noneMatch(name -> Files.exists(folder.resolve(name)))) {
            return null;
        }
        final String configured =
                ModelFiles.json(folder.resolve(PROCESSOR)).path("chat_template").textValue();
        return configured != null ? configured : legacy.path("chat_template").textValue();
    }

    private static Map<String, String> inline(JsonNode config) {
        final Map<String, String> templates = new LinkedHashMap<>();
        final JsonNode given = config.path("chat_template");
        if (given.isTextual()) {
            templates.put(DEFAULT, given.textValue());
        } else if (given.isArray()) {
            given.forEach(
                    entry ->
                            templates.put(
                                    entry.path("name").asText(), entry.path("template").asText()));
        } else if (given.isObject()) {
            given.properties().forEach(e -> templates.put(e.getKey(), e.getValue().asText()));
        }
        return templates;
    }
}
