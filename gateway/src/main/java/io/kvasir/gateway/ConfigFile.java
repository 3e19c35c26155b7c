package io.kvasir.gateway;

import io.kvasir.router.RoutingMode;

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
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads a {@link GatewayConfig} from YAML; every complaint names file and line. */
final class ConfigFile {
    /** Every key, in the order in which they are listed to people. */
    static final List<String> KEYS =
            List.of(
                    "host",
                    "port",
                    "model",
                    "lora-adapters",
                    "tokenizer",
                    "block-size",
                    "workers",
                    "mode",
                    "overlap-weight",
                    "temperature",
                    "seed",
                    "max-workers",
                    "max-blocks",
                    "max-held-blocks",
                    "index-bytes",
                    "approximate",
                    "ttl-secs",
                    "max-tree-size",
                    "prune-target-ratio",
                    "max-active-requests",
                    "max-body-bytes",
                    "inject-include-usage",
                    "retries",
                    "connect-timeout-ms",
                    "upstream-idle-timeout-ms",
                    "client-idle-timeout-ms",
                    "health-interval-ms",
                    "booking-timeout-ms",
                    "drain-timeout-ms",
                    "decision-log-size");

    private final Path file;
    private final GatewayConfig.Builder builder = GatewayConfig.builder();
    private long maxBlocks = 1 << 20;
    private long maxHeldBlocks = -1;

    private ConfigFile(Path file) {
        this.file = file;
    }

    static GatewayConfig.Builder read(Path file) throws IOException {
        final ConfigFile config = new ConfigFile(file);
        try (Reader reader = Files.newBufferedReader(file)) {
            final Node root =
                    new Compose(LoadSettings.builder().setLabel(file.toString()).build())
                            .composeReader(reader)
                            .orElseThrow(() -> new IllegalArgumentException(file + " is empty"));
            config.read(root);
        } catch (YamlEngineException e) {
            throw new IllegalArgumentException(file + " is not YAML: " + e.getMessage(), e);
        }
        return config.builder;
    }

    private void read(Node root) {
        if (!(root instanceof MappingNode mapping)) {
            throw error(root, "a mapping of keys is needed");
        }
        final Set<String> seen = new HashSet<>();
        for (NodeTuple tuple : mapping.getValue()) {
            final String key = text(tuple.getKeyNode());
            if (!KEYS.contains(key)) {
                throw error(tuple.getKeyNode(), "unknown key '" + key + "'; known keys: " + KEYS);
            }
            if (!seen.add(key)) {
                throw error(tuple.getKeyNode(), "key '" + key + "' is given twice");
            }
            try {
                set(key, tuple.getValueNode());
            } catch (Located e) {
                throw e;
            } catch (IllegalArgumentException e) {
                throw error(tuple.getValueNode(), key + ": " + e.getMessage());
            }
        }
        builder.maxBlocks(maxBlocks, maxHeldBlocks < 0 ? 2 * maxBlocks : maxHeldBlocks);
    }

    private void set(String key, Node value) {
        switch (key) {
            case "host" -> builder.host(text(value));
            case "port" -> builder.port((int) number(value, 0, 65_535));
            case "model" -> builder.model(text(value));
            case "lora-adapters" -> builder.loraAdapters(texts(value));
            case "tokenizer" ->
                    builder.tokenizer(file.toAbsolutePath().resolveSibling(text(value)));
            case "block-size" -> builder.blockSize(integer(value));
            case "workers" -> workers(value);
            case "mode" -> builder.mode(RoutingMode.parse(text(value)));
            case "overlap-weight" -> builder.overlapWeight(decimal(value));
            case "temperature" -> builder.temperature(decimal(value));
            case "seed" -> builder.seed(number(value, Long.MIN_VALUE, Long.MAX_VALUE));
            case "max-workers" -> builder.maxWorkers(integer(value));
            case "max-blocks" -> maxBlocks = number(value, 1, Long.MAX_VALUE / 2);
            case "max-held-blocks" -> maxHeldBlocks = number(value, 1, Long.MAX_VALUE);
            case "index-bytes" -> builder.indexBytes(number(value, 0, Long.MAX_VALUE));
            case "approximate" -> builder.approximate(bool(value));
            case "ttl-secs" -> builder.ttl(Duration.ofSeconds(integer(value)));
            case "max-tree-size" -> builder.maxTreeSize(number(value, 1, Long.MAX_VALUE));
            case "prune-target-ratio" -> builder.pruneTargetRatio(decimal(value));
            case "max-active-requests" -> builder.maxActiveRequests(integer(value));
            case "max-body-bytes" -> builder.maxBodyBytes(integer(value));
            case "inject-include-usage" -> builder.injectIncludeUsage(bool(value));
            case "retries" -> builder.retries((int) number(value, 0, 1000));
            case "connect-timeout-ms" -> builder.connectTimeout(millis(value));
            case "upstream-idle-timeout-ms" -> builder.upstreamIdleTimeout(millis(value));
            case "client-idle-timeout-ms" -> builder.clientIdleTimeout(millis(value));
            case "health-interval-ms" -> builder.healthInterval(millis(value));
            case "booking-timeout-ms" -> builder.bookingTimeout(millisOrZero(value));
            case "drain-timeout-ms" -> builder.drainTimeout(millisOrZero(value));
            case "decision-log-size" -> builder.decisionLogSize(integer(value));
            default -> throw new AssertionError("key " + key + " is listed but not read");
        }
    }

    private void workers(Node value) {
        if (!(value instanceof SequenceNode list)) {
            throw error(value, "workers must be a list");
        }
        for (Node item : list.getValue()) {
            try {
                builder.worker(
                        item instanceof MappingNode mapping
                                ? WorkerConfig.of(texts(mapping))
                                : WorkerConfig.parse(text(item)));
            } catch (Located e) {
                throw e;
            } catch (IllegalArgumentException e) {
                throw error(item, e.getMessage());
            }
        }
    }

    private Map<String, String> texts(MappingNode mapping) {
        final Map<String, String> texts = new LinkedHashMap<>();
        for (NodeTuple tuple : mapping.getValue()) {
            final String key = text(tuple.getKeyNode());
            if (!WorkerConfig.KEYS.contains(key)) {
                throw error(
                        tuple.getKeyNode(),
                        "unknown key '" + key + "'; known keys: " + WorkerConfig.KEYS);
            }
            texts.put(key, text(tuple.getValueNode()));
        }
        return texts;
    }

    private List<String> texts(Node value) {
        if (!(value instanceof SequenceNode list)) {
            throw error(value, "a list of names is needed");
        }
        final List<String> texts = new ArrayList<>();
        for (Node item : list.getValue()) {
            texts.add(text(item));
        }
        return texts;
    }

    private String text(Node node) {
        if (node instanceof ScalarNode scalar && !scalar.getValue().isEmpty()) {
            return scalar.getValue();
        }
        throw error(node, "a single value is needed");
    }

    private int integer(Node node) {
        return (int) number(node, 1, Integer.MAX_VALUE);
    }

    private Duration millis(Node node) {
        return Duration.ofMillis(integer(node));
    }

    private Duration millisOrZero(Node node) {
        return Duration.ofMillis(number(node, 0, Integer.MAX_VALUE));
    }

    private long number(Node node, long least, long most) {
        final String text = text(node);
        try {
            final long value = Long.parseLong(text.replace("_", ""));
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw error(node, "'" + text + "' is not a whole number");
        }
        throw error(node, text + " is not in " + least + ".." + most);
    }

    private double decimal(Node node) {
        try {
            final double value = Double.parseDouble(text(node));
            if (value >= 0 && value < Double.POSITIVE_INFINITY) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw error(node, "'" + text(node) + "' is not a number");
        }
        throw error(node, text(node) + " must be finite and not negative");
    }

    private boolean bool(Node node) {
        return switch (text(node)) {
            case "true" -> true;
            case "false" -> false;
            default -> throw error(node, "'" + text(node) + "' must be true or false");
        };
    }

    private Located error(Node node, String message) {
        final String line = node.getStartMark().map(mark -> ":" + (mark.getLine() + 1)).orElse("");
        return new Located(file + line + ": " + message);
    }

    /** A complaint that already says where. */
    private static final class Located extends IllegalArgumentException {
        private static final long serialVersionUID = 1L;

        Located(String message) {
            super(message);
        }
    }
}
