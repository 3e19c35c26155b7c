package io.kvasir.gateway.config;

import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;

import java.nio.file.Path;

/** What the router of a model's prefill workers goes by: its main router's, but for a few. */
public final class PrefillSettings {
    private static final String FOLDER = "prefill";

    private PrefillSettings() {}

    /** Those that follow from a model's. */
    public static Settings of(GatewayConfig model) {
        final Settings.Builder settings =
                model.settings().toBuilder()
                        .without(RouterSettings.MODE)
                        .without(RouterSettings.OVERLAP_WEIGHT)
                        .without(RouterSettings.TRACK_PREFILL_TOKENS)
                        .set(RouterSettings.MODE, model.get(GatewaySettings.PREFILL_MODE))
                        .set(
                                RouterSettings.OVERLAP_WEIGHT,
                                model.get(GatewaySettings.PREFILL_OVERLAP_WEIGHT))
                        .set(RouterSettings.TRACK_PREFILL_TOKENS, true) // its only load
                        .set(RouterSettings.TRACK_ACTIVE_BLOCKS, false);
        for (Setting<Path> folder : RouterSettings.FOLDERS) {
            final Path root = model.get(folder);
            if (root != null) {
                settings.set(folder, root.resolve(FOLDER));
            }
        }
        return settings.build();
    }
}
