package io.kvasir.gateway;

import io.kvasir.router.Setting;
import io.kvasir.router.Settings;
import io.kvasir.router.Settings.Source;

import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;

import java.io.IOException;
import java.io.Reader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;

/** Reads settings from YAML; every complaint names file and line. */
final class ConfigFile {
    /** Settings whose values are relative to the file. */
    private static final Set<Setting<?>> PATHS =
            Set.of(GatewaySettings.TOKENIZER, GatewaySettings.ADMIN_TOKEN_FILE);

    private final Path file;
    private final Settings.Builder settings;

    private ConfigFile(Path file, Settings.Builder settings) {
        this.file = file;
        this.settings = settings;
    }

    static void read(Path file, Settings.Builder settings) throws IOException {
        try (Reader reader = Files.newBufferedReader(file)) {
            final Node root =
                    new Compose(LoadSettings.builder().setLabel(file.toString()).build())
                            .composeReader(reader)
                            .orElseThrow(() -> new IllegalArgumentException(file + " is empty"));
            new ConfigFile(file, settings).read(root);
        } catch (YamlEngineException e) {
            throw new IllegalArgumentException(file + " is not YAML: " + e.getMessage(), e);
        }
    }

    private void read(Node root) {
        if (!(root instanceof MappingNode mapping)) {
            throw error(root, "a mapping of keys is needed");
        }
        final Set<Setting<?>> seen = new HashSet<>();
        for (NodeTuple tuple : mapping.getValue()) {
            final Node key = tuple.getKeyNode();
            final Setting<?> setting = at(key, () -> GatewaySettings.TABLE.named(text(key)));
            if (!seen.add(setting)) {
                throw error(key, "'" + text(key) + "' is given twice");
            }
            if (setting == GatewaySettings.WORKERS) {
                final List<WorkerConfig> workers = new ArrayList<>();
                for (Node item : elements(tuple.getValueNode())) {
                    workers.add(at(item, () -> worker(item)));
                }
                settings.set(GatewaySettings.WORKERS, workers, Source.FILE, origin(key));
            } else {
                at(tuple.getValueNode(), () -> parse(setting, tuple.getValueNode()));
            }
        }
    }

    private Settings.Builder parse(Setting<?> setting, Node value) {
        final List<String> texts = new ArrayList<>();
        for (Node node : setting.isList() ? elements(value) : List.of(value)) {
            texts.add(PATHS.contains(setting) ? beside(setting, text(node)) : text(node));
        }
        return settings.parse(setting, texts, Source.FILE, origin(value));
    }

    /** A path relative to the file, unless it is the word for the simulated model. */
    private String beside(Setting<?> setting, String path) {
        return setting == GatewaySettings.TOKENIZER && path.equals(SimModel.KEYWORD)
                ? path
                : file.toAbsolutePath().resolveSibling(path).toString();
    }

    private WorkerConfig worker(Node item) {
        if (!(item instanceof MappingNode mapping)) {
            return WorkerConfig.parse(text(item));
        }
        final Map<String, String> texts = new LinkedHashMap<>();
        for (NodeTuple tuple : mapping.getValue()) {
            final Node key = tuple.getKeyNode();
            if (!WorkerConfig.KEYS.contains(text(key))) {
                throw error(
                        key, "unknown key '" + text(key) + "'; known keys: " + WorkerConfig.KEYS);
            }
            texts.put(text(key), text(tuple.getValueNode()));
        }
        return WorkerConfig.of(texts);
    }

    private List<Node> elements(Node value) {
        if (value instanceof SequenceNode list) {
            return list.getValue();
        }
        throw error(value, "a list is needed");
    }

    private String text(Node node) {
        if (node instanceof ScalarNode scalar && !scalar.getValue().isEmpty()) {
            return scalar.getValue();
        }
        throw error(node, "a single value is needed");
    }

    /** Does something with a node and adds its line to a complaint. */
    private <T> T at(Node node, Supplier<T> reading) {
        try {
            return reading.get();
        } catch (Located e) {
            throw e;
        } catch (IllegalArgumentException e) {
            throw error(node, e.getMessage());
        }
    }

    private String origin(Node node) {
        return file + node.getStartMark().map(mark -> ":" + (mark.getLine() + 1)).orElse("");
    }

    private Located error(Node node, String message) {
        return new Located(origin(node) + ": " + message);
    }

    /** A complaint that already has file and line. */
    private static final class Located extends IllegalArgumentException {
        private static final long serialVersionUID = 1L;

        Located(String message) {
            super(message);
        }
    }
}
