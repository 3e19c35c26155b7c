package io.kvasir.gateway.config;

import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.Settings.Source;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * What the values of a running gateway are made of: those of its flags, variables and file, and
 * over them what operators have changed. A change of an operator stays over what the file says
 * later, until it is withdrawn. Immutable.
 */
public final class SettingLayers {
    /** Origin of what operators have changed. */
    public static final String ADMIN_PORT = "PATCH /settings";

    /** Stands for the gateway where others name a model that is not the first. */
    private static final String GATEWAY = "";

    /**
     * A value that the file has now and that holds after a start.
     *
     * @param model empty for the gateway's own
     */
    public record Waiting(String model, Setting<?> setting, List<String> wanted) {}

    private final Settings base;
    private final Map<String, Map<Setting<?>, List<String>>> operators; // by model
    private final List<Waiting> waiting;

    private SettingLayers(
            Settings base,
            Map<String, Map<Setting<?>, List<String>>> operators,
            List<Waiting> waiting) {
        this.base = base;
        this.operators = operators;
        this.waiting = waiting;
    }

    /** Those of a gateway that begins. */
    public static SettingLayers of(GatewayConfig config) {
        return new SettingLayers(config.given(), Map.of(), List.of());
    }

    /** What the file wants and only a start can give. */
    public List<Waiting> waiting() {
        return waiting;
    }

    /**
     * The values that follow.
     *
     * @throws IllegalArgumentException if they do not go together
     */
    public GatewayConfig config() {
        final Settings.Builder all = base.toBuilder();
        changed(all, operators.getOrDefault(GATEWAY, Map.of()));
        if (!base.get(GatewaySettings.MODELS).isEmpty()) {
            setModels(
                    all,
                    base,
                    base.get(GatewaySettings.MODELS).stream().map(this::changed).toList());
        }
        return GatewayConfig.of(all.build());
    }

    private ModelConfig changed(ModelConfig model) {
        final Map<Setting<?>, List<String>> changes = operators.get(model.name());
        if (changes == null) {
            return model;
        }
        final Settings.Builder own = model.own().toBuilder();
        changed(own, changes);
        return model.with(own.build());
    }

    private static void changed(Settings.Builder all, Map<Setting<?>, List<String>> changes) {
        changes.forEach((setting, texts) -> all.parse(setting, texts, Source.OPERATOR, ADMIN_PORT));
    }

    private static void setModels(
            Settings.Builder all, Settings sourceOf, List<ModelConfig> models) {
        all.without(GatewaySettings.MODELS)
                .set(
                        GatewaySettings.MODELS,
                        models,
                        sourceOf.source(GatewaySettings.MODELS),
                        sourceOf.origin(GatewaySettings.MODELS));
    }

    /**
     * The same with changes of an operator.
     *
     * @param modelOrNull whose; null for the gateway's own values, which are its first model's and
     *     those of any other model that has none of its own
     * @param changes by name: what it is to be, as it is written, and null for what it was without
     *     an operator
     * @throws IllegalArgumentException if any of it cannot be; the message has all of what cannot
     */
    public SettingLayers with(String modelOrNull, Map<String, List<String>> changes) {
        final List<String> problems = new ArrayList<>();
        final String model = layer(modelOrNull);
        final Map<Setting<?>, List<String>> layer =
                new LinkedHashMap<>(operators.getOrDefault(model, Map.of()));
        changes.forEach(
                (name, texts) -> {
                    try {
                        put(layer, live(model, name), texts);
                    } catch (IllegalArgumentException e) {
                        problems.addAll(e.getMessage().lines().toList());
                    }
                });
        if (!problems.isEmpty()) {
            throw new IllegalArgumentException(String.join("; ", problems));
        }
        final Map<String, Map<Setting<?>, List<String>>> all = new LinkedHashMap<>(operators);
        all.put(model, Map.copyOf(layer));
        return new SettingLayers(base, Map.copyOf(all), waiting);
    }

    private String layer(String modelOrNull) {
        if (modelOrNull == null || modelOrNull.equals(base.get(GatewaySettings.MODEL))) {
            return GATEWAY;
        }
        final List<String> names =
                base.get(GatewaySettings.MODELS).stream().map(ModelConfig::name).toList();
        if (!names.contains(modelOrNull)) {
            throw new IllegalArgumentException(
                    "no model is named '"
                            + modelOrNull
                            + "'; the gateway serves "
                            + base.get(GatewaySettings.MODEL)
                            + (names.isEmpty() ? "" : ", " + String.join(", ", names)));
        }
        return modelOrNull;
    }

    private static Setting<?> live(String model, String name) {
        final Setting<?> setting = GatewaySettings.TABLE.named(name);
        if (!setting.isLive()) {
            throw new IllegalArgumentException(
                    setting
                            + " cannot be changed while the gateway runs; set it in the file or by"
                            + " flag, and start it again");
        }
        if (!model.equals(GATEWAY) && !ModelConfig.TABLE.has(name)) {
            throw new IllegalArgumentException(
                    "'" + setting + "' is the gateway's: it cannot be set for one model");
        }
        return setting;
    }

    private static void put(
            Map<Setting<?>, List<String>> layer, Setting<?> setting, List<String> textsOrNull) {
        if (textsOrNull == null) {
            layer.remove(setting);
            return;
        }
        if (!setting.isList() && textsOrNull.size() != 1) {
            throw new IllegalArgumentException(
                    setting + " takes one value, not " + textsOrNull.size());
        }
        setting.parse(textsOrNull);
        layer.put(setting, List.copyOf(textsOrNull));
    }

    /**
     * The same with what flags, variables and file say now: the values of live rows, while what
     * others say is {@link #waiting} for a start.
     */
    public SettingLayers read(GatewayConfig fresh) {
        final Settings now = fresh.given();
        final List<Waiting> late = new ArrayList<>();
        final Settings.Builder all = base.toBuilder();
        for (Setting<?> row : GatewaySettings.TABLE.rows()) {
            if (row != GatewaySettings.MODELS) {
                take(GATEWAY, row, base, now, all, late);
            }
        }
        final List<ModelConfig> models = new ArrayList<>();
        for (ModelConfig model : base.get(GatewaySettings.MODELS)) {
            final ModelConfig other = named(model.name(), now);
            models.add(other == null ? model : read(model, other, late));
        }
        if (!names(base).equals(names(now))) {
            late.add(
                    new Waiting(
                            GATEWAY,
                            GatewaySettings.MODELS,
                            now.get(GatewaySettings.MODELS).stream()
                                    .map(ModelConfig::name)
                                    .toList()));
        }
        setModels(all, base, models);
        return new SettingLayers(all.build(), operators, List.copyOf(late));
    }

    private static ModelConfig read(ModelConfig model, ModelConfig other, List<Waiting> late) {
        final Settings.Builder own = model.own().toBuilder();
        for (Setting<?> row : ModelConfig.TABLE.rows()) {
            take(model.name(), row, model.own(), other.own(), own, late);
        }
        return model.with(own.build());
    }

    private static void take(
            String model,
            Setting<?> row,
            Settings before,
            Settings now,
            Settings.Builder all,
            List<Waiting> late) {
        if (row.isLive()) {
            all.copy(row, now);
        } else if (!Objects.equals(before.get(row), now.get(row))) {
            late.add(new Waiting(model, row, ConfigDump.shown(now, row)));
        }
    }

    private static ModelConfig named(String name, Settings values) {
        return values.get(GatewaySettings.MODELS).stream()
                .filter(model -> model.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    private static List<String> names(Settings values) {
        return values.get(GatewaySettings.MODELS).stream().map(ModelConfig::name).toList();
    }
}
