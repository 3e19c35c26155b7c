package io.kvasir.gateway.config;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.SettingTable;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.Settings.Source;
import io.kvasir.router.settings.WrongSettingsException;

import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A model that a gateway serves beside its first one, and what is set for it alone. Tokenizer and
 * adapters are a model's own; of all else it has the gateway's value where nothing is set.
 * Immutable.
 */
public final class ModelConfig {
    /** What can be set for one model. */
    static final SettingTable TABLE =
            new SettingTable(
                            List.of(
                                    GatewaySettings.LORA,
                                    GatewaySettings.TOKENIZER,
                                    GatewaySettings.TRUST_REQUEST_CHAT_TEMPLATE,
                                    GatewaySettings.TEMPLATE_MAX_STEPS,
                                    GatewaySettings.TEMPLATE_MAX_OUTPUT_CHARS,
                                    GatewaySettings.TEMPLATE_MAX_MEMORY_BYTES,
                                    GatewaySettings.TEMPLATE_MAX_DEPTH,
                                    GatewaySettings.TEMPLATE_CACHE_BYTES,
                                    GatewaySettings.PREFILL_MODE,
                                    GatewaySettings.PREFILL_OVERLAP_WEIGHT,
                                    GatewaySettings.SPLIT_MODE,
                                    GatewaySettings.SPLIT_MIN_TOKENS,
                                    GatewaySettings.SPLIT_MIN_RATIO,
                                    GatewaySettings.SPLIT_MAX_QUEUE,
                                    GatewaySettings.SPLIT_HARM_WEIGHT,
                                    GatewaySettings.TRANSFER_COSTS,
                                    GatewaySettings.SPLIT_FALLBACK,
                                    GatewaySettings.PREFILL_ATTEMPTS,
                                    GatewaySettings.PREFILL_TIMEOUT,
                                    GatewaySettings.FIRST_BYTE_TIMEOUT,
                                    GatewaySettings.STREAM_IDLE_TIMEOUT,
                                    GatewaySettings.ANSWER_TIMEOUT,
                                    GatewaySettings.PANIC_PERCENT,
                                    GatewaySettings.NATS_NAMESPACE,
                                    GatewaySettings.NATS_COMPONENT,
                                    GatewaySettings.NATS_ENDPOINT))
                    .with(RouterSettings.TABLE.rows());

    /** Key of the name. */
    static final String NAME = "name";

    private final String name;
    private final Settings own;

    private ModelConfig(String name, Settings own) {
        this.name = name;
        this.own = own;
    }

    /**
     * Parses the form used by the {@code --serve-model} flag: {@code
     * name=M,tokenizer=DIR,lora=A;B,block-size=32}. Elements of lists have semicolons between.
     *
     * @throws IllegalArgumentException if there is no name, or keys or values are wrong; the
     *     message has a line for each of them
     */
    public static ModelConfig parse(String flag) {
        final Builder builder = new Builder();
        WrongSettingsException.throwIfAnyFails(
                List.of(flag.split(",", -1)), part -> parse(part, builder));
        return builder.build();
    }

    private static void parse(String part, Builder builder) {
        final int equals = part.indexOf('=');
        if (equals < 1 || equals == part.length() - 1) {
            throw new IllegalArgumentException("has '" + part + "', which is not key=value");
        }
        final String key = part.substring(0, equals).strip();
        final String value = part.substring(equals + 1).strip();
        if (key.equals(NAME)) {
            builder.name(value);
            return;
        }
        final Setting<?> setting = builder.key(key);
        builder.parse(
                setting,
                setting.isList() ? List.of(value.split(";", -1)) : List.of(value),
                Source.CODE,
                GatewaySettings.MODELS.name());
    }

    /** Name under which the model is served. */
    public String name() {
        return name;
    }

    /** What of a setting is said for this model alone. */
    boolean sets(Setting<?> setting) {
        return own.source(setting) != Source.DEFAULT;
    }

    /**
     * What is set for the model, over the values of a gateway. What is of the model's text, or from
     * code, is from where the gateway's models are.
     */
    Settings over(Settings gateway) {
        final Settings.Builder all =
                gateway.toBuilder()
                        .without(GatewaySettings.MODELS)
                        .without(GatewaySettings.LORA)
                        .without(GatewaySettings.TOKENIZER)
                        .set(GatewaySettings.MODEL, name);
        for (Setting<?> row : TABLE.rows()) {
            if (own.source(row) == Source.CODE) {
                put(row, all.without(row), gateway);
            } else if (sets(row)) {
                all.copy(row, own);
            }
        }
        return all.build();
    }

    private <T> void put(Setting<T> row, Settings.Builder all, Settings gateway) {
        all.set(
                row,
                own.get(row),
                gateway.source(GatewaySettings.MODELS),
                gateway.origin(GatewaySettings.MODELS),
                own.texts(row));
    }

    /** What is set for the model alone. */
    public Settings own() {
        return own;
    }

    /** The same with other values of its own. */
    public ModelConfig with(Settings values) {
        return new ModelConfig(name, values);
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ModelConfig model && model.toString().equals(toString());
    }

    @Override
    public int hashCode() {
        return toString().hashCode();
    }

    /** As it is written in a flag. */
    @Override
    public String toString() {
        return Stream.concat(
                        Stream.of(NAME + "=" + name),
                        TABLE.rows().stream().filter(this::sets).map(this::printed))
                .collect(Collectors.joining(","));
    }

    private <T> String printed(Setting<T> row) {
        final T value = own.get(row);
        return row.name()
                + "="
                + (value instanceof List<?> all
                        ? all.stream().map(String::valueOf).collect(Collectors.joining(";"))
                        : row.print(value));
    }

    /** Collects what is set for one model. Owned by one thread. */
    public static final class Builder {
        private final Settings.Builder own = Settings.builder(TABLE);
        private final NamedSettings named = new NamedSettings();
        private String name;

        /** Begins with a model that has no name yet. */
        public Builder() {}

        /**
         * Names the model.
         *
         * @throws IllegalArgumentException if it has a name already, or the name is blank
         */
        public Builder name(String served) {
            if (name != null) {
                throw new IllegalArgumentException("'name' is given twice");
            }
            if (served.isBlank()) {
                throw new IllegalArgumentException("a model's name is not blank");
            }
            name = served;
            return this;
        }

        /**
         * Sets a value from code.
         *
         * @param setting a row of {@link RouterSettings}, or one of {@link GatewaySettings} that
         *     models have of their own
         * @throws IllegalArgumentException if it is out of range, or the gateway's
         */
        public <T> Builder set(Setting<T> setting, T value) {
            if (known(setting.name()) == setting) {
                own.set(setting, value);
            }
            return this;
        }

        private static Setting<?> known(String key) {
            if (!TABLE.has(key) && GatewaySettings.TABLE.has(key)) {
                throw new IllegalArgumentException(
                        "'" + key + "' is the gateway's: it cannot be set for one model");
            }
            return TABLE.named(key);
        }

        /**
         * The setting that a key names.
         *
         * @throws IllegalArgumentException if there is none, it is the gateway's, or was named
         *     before
         */
        Setting<?> key(String key) {
            return named.add(known(key), key);
        }

        Builder parse(Setting<?> setting, List<String> texts, Source source, String origin) {
            own.parse(setting, texts, source, origin);
            return this;
        }

        /**
         * Makes the model.
         *
         * @throws IllegalArgumentException if it has no name
         */
        public ModelConfig build() {
            if (name == null) {
                throw new IllegalArgumentException("a model needs name=");
            }
            return new ModelConfig(name, own.build());
        }
    }
}
