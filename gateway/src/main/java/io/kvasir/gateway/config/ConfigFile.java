package io.kvasir.gateway.config;

import io.kvasir.prompt.chat.SimModel;
import io.kvasir.registry.ConfiguredFile;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.Settings.Source;
import io.kvasir.router.settings.WrongSettingsException;

import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/** Reads settings from YAML; every complaint names file and line. */
public final class ConfigFile {
    /** Settings whose values are relative to the file. */
    private static final Set<Setting<?>> PATHS =
            Set.of(
                    GatewaySettings.TOKENIZER,
                    GatewaySettings.ADMIN_TOKEN_FILE,
                    GatewaySettings.TRUSTED_TOKEN_FILE,
                    GatewaySettings.WORKER_KEY_FILE,
                    GatewaySettings.WORKER_TRUST_STORE,
                    GatewaySettings.WORKERS_FILE);

    private final Path file;
    private final Settings.Builder settings;

    private ConfigFile(Path file, Settings.Builder settings) {
        this.file = file;
        this.settings = settings;
    }

    static void read(Path file, Settings.Builder settings) throws IOException {
        final Node root =
                YamlTree.of(file, content(file))
                        .orElseThrow(() -> new IllegalArgumentException(file + " is empty"));
        new ConfigFile(file, settings).read(root);
    }

    /** A failure names the file. */
    private static byte[] content(Path file) throws IOException {
        try {
            return ConfiguredFile.read(file, ConfiguredFile.MAX_CONFIGURATION_BYTES);
        } catch (IOException e) {
            final FileSystemException named =
                    new FileSystemException(file.toString(), null, FailureText.of(e));
            named.initCause(e);
            throw named;
        }
    }

    /**
     * Reads a file that has workers alone: a list of them, or a mapping with the key {@code
     * workers}.
     *
     * @param model of workers that name none
     * @throws IOException if it is no text
     * @throws IllegalArgumentException if it is not that, or a key or value is wrong; the message
     *     names file, line and key
     */
    public static List<DiscoveredWorker> workers(Path file, byte[] content, String model)
            throws IOException {
        final Node root =
                YamlTree.of(file, content)
                        .orElseThrow(
                                () ->
                                        new IllegalArgumentException(
                                                file + " is empty; no workers are []"));
        return new ConfigFile(file, Settings.builder(GatewaySettings.TABLE))
                .discovered(root, model);
    }

    private List<DiscoveredWorker> discovered(Node root, String model) {
        Node list = root;
        if (root instanceof MappingNode mapping) {
            if (mapping.getValue().size() != 1
                    || !text(mapping.getValue().getFirst().getKeyNode()).equals("workers")) {
                throw error(root, "a list of workers or the one key 'workers' is needed");
            }
            list = mapping.getValue().getFirst().getValueNode();
        }
        final List<DiscoveredWorker> workers = new ArrayList<>();
        final Set<String> names = new HashSet<>();
        WrongSettingsException.throwIfAnyFails(
                elements(list),
                item -> {
                    final DiscoveredWorker worker = at(item, () -> discoveredWorker(item, model));
                    if (!names.add(worker.name())) {
                        throw error(item, "two workers are named '" + worker.name() + "'");
                    }
                    workers.add(worker);
                });
        return workers;
    }

    private DiscoveredWorker discoveredWorker(Node item, String model) {
        return item instanceof MappingNode mapping
                ? of(mapping, DiscoveredWorker.KEYS, texts -> DiscoveredWorker.of(model, texts))
                : DiscoveredWorker.of(model, parsed(item));
    }

    /** Makes something of a mapping; complains of all keys and values that are wrong. */
    private <T> T of(
            MappingNode mapping, List<String> keys, Function<Map<String, String>, T> reading) {
        final Map<String, String> texts = new LinkedHashMap<>();
        final List<String> problems = new ArrayList<>();
        for (NodeTuple tuple : mapping.getValue()) {
            try {
                put(tuple, keys, texts);
            } catch (Located e) {
                problems.add(e.getMessage());
            }
        }
        T read = null;
        try {
            read = reading.apply(texts);
        } catch (IllegalArgumentException e) {
            problems.add(error(mapping, e.getMessage()).getMessage());
        }
        WrongSettingsException.throwIfAny(problems);
        return read;
    }

    private void put(NodeTuple tuple, List<String> keys, Map<String, String> texts) {
        final String key = text(tuple.getKeyNode());
        if (!keys.contains(key)) {
            throw error(tuple.getKeyNode(), "unknown key '" + key + "'; known keys: " + keys);
        }
        if (texts.put(key, text(tuple.getValueNode())) != null) {
            throw error(tuple.getKeyNode(), "'" + key + "' is given twice");
        }
    }

    private void read(Node root) {
        if (!(root instanceof MappingNode mapping)) {
            throw error(root, "a mapping of keys is needed");
        }
        final NamedSettings named = new NamedSettings();
        WrongSettingsException.throwIfAnyFails(mapping.getValue(), tuple -> read(tuple, named));
    }

    private void read(NodeTuple tuple, NamedSettings named) {
        final Node key = tuple.getKeyNode();
        final String name = text(key);
        final Setting<?> setting =
                at(key, () -> named.add(GatewaySettings.TABLE.named(name), name));
        if (setting == GatewaySettings.WORKERS) {
            final List<WorkerConfig> workers = new ArrayList<>();
            final List<String> written = new ArrayList<>();
            WrongSettingsException.throwIfAnyFails(
                    elements(tuple.getValueNode()),
                    item -> {
                        workers.add(at(item, () -> worker(item)));
                        written.add(written(item));
                    });
            settings.set(GatewaySettings.WORKERS, workers, Source.FILE, origin(key), written);
        } else if (setting == GatewaySettings.MODELS) {
            final List<ModelConfig> models = new ArrayList<>();
            WrongSettingsException.throwIfAnyFails(
                    elements(tuple.getValueNode()), item -> models.add(model(item)));
            settings.set(GatewaySettings.MODELS, models, Source.FILE, origin(key));
        } else {
            at(tuple.getValueNode(), () -> parse(setting, tuple.getValueNode()));
        }
    }

    /** A worker in the form of a flag. */
    private String written(Node item) {
        return item instanceof MappingNode mapping
                ? mapping.getValue().stream()
                        .map(
                                member ->
                                        text(member.getKeyNode())
                                                + "="
                                                + text(member.getValueNode()))
                        .collect(Collectors.joining(","))
                : text(item);
    }

    private Settings.Builder parse(Setting<?> setting, Node value) {
        return settings.parse(setting, texts(setting, value), Source.FILE, origin(value));
    }

    private List<String> texts(Setting<?> setting, Node value) {
        if (setting.isList()) {
            WrongSettingsException.throwIfAnyFails(
                    elements(value), node -> at(node, () -> setting.element(text(node))));
        }
        final List<String> texts = new ArrayList<>();
        for (Node node : setting.isList() ? elements(value) : List.of(value)) {
            texts.add(PATHS.contains(setting) ? beside(setting, text(node)) : text(node));
        }
        return texts;
    }

    private ModelConfig model(Node item) {
        if (!(item instanceof MappingNode mapping)) {
            return model(item, text(item));
        }
        final ModelConfig.Builder model = new ModelConfig.Builder();
        WrongSettingsException.throwIfAnyFails(mapping.getValue(), tuple -> read(tuple, model));
        return at(item, model::build);
    }

    /** In the form of a flag. */
    private ModelConfig model(Node item, String text) {
        try {
            return ModelConfig.parse(text);
        } catch (IllegalArgumentException e) {
            throw error(item, e.getMessage());
        }
    }

    private void read(NodeTuple tuple, ModelConfig.Builder model) {
        final Node key = tuple.getKeyNode();
        final Node value = tuple.getValueNode();
        if (text(key).equals(ModelConfig.NAME)) {
            at(value, () -> model.name(text(value)));
        } else {
            final Setting<?> setting = at(key, () -> model.key(text(key)));
            at(
                    value,
                    () -> model.parse(setting, texts(setting, value), Source.FILE, origin(value)));
        }
    }

    /** A path relative to the file, unless it is the word for the simulated model. */
    private String beside(Setting<?> setting, String path) {
        return isKeyword(setting, path)
                ? path
                : file.toAbsolutePath().resolveSibling(path).toString();
    }

    private static boolean isKeyword(Setting<?> setting, String path) {
        return setting == GatewaySettings.TOKENIZER && path.equals(SimModel.KEYWORD);
    }

    /** A text that says in a file of any folder what it says in a flag. */
    static String fromAnyFolder(Setting<?> setting, String text) {
        return !PATHS.contains(setting) || text.isEmpty() || isKeyword(setting, text)
                ? text
                : Path.of(text).toAbsolutePath().toString();
    }

    private WorkerConfig worker(Node item) {
        if (!(item instanceof MappingNode mapping)) {
            return parsed(item);
        }
        return of(mapping, WorkerConfig.KEYS, WorkerConfig::of);
    }

    /** In the form of a flag. */
    private WorkerConfig parsed(Node item) {
        try {
            return WorkerConfig.parse(text(item));
        } catch (WrongSettingsException e) {
            throw error(item, e.getMessage());
        }
    }

    private List<Node> elements(Node value) {
        if (value instanceof SequenceNode list) {
            return list.getValue();
        }
        throw error(value, "a list is needed");
    }

    private String text(Node node) {
        if (!(node instanceof ScalarNode scalar) || scalar.getValue().isEmpty()) {
            throw error(node, "a single value is needed");
        }
        if (!StandardCharsets.UTF_8.newEncoder().canEncode(scalar.getValue())) {
            throw error(node, "half of a surrogate pair is no character");
        }
        return scalar.getValue();
    }

    /** Does something with a node and adds its line to a complaint. */
    private <T> T at(Node node, Supplier<T> reading) {
        try {
            return reading.get();
        } catch (Located | WrongSettingsException e) {
            throw e;
        } catch (IllegalArgumentException e) {
            throw error(node, e.getMessage());
        }
    }

    private String origin(Node node) {
        return file + node.getStartMark().map(mark -> ":" + (mark.getLine() + 1)).orElse("");
    }

    private Located error(Node node, String message) {
        final String from = origin(node) + ": "; // of each line
        return new Located(from + message.replace("\n", "\n" + from));
    }

    /** A complaint that already has file and line. */
    private static final class Located extends IllegalArgumentException {
        private static final long serialVersionUID = 1L;

        Located(String message) {
            super(message);
        }
    }
}
