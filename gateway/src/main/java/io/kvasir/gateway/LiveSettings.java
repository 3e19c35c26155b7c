package io.kvasir.gateway;

import io.kvasir.gateway.config.ConfigDump;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.SettingLayers;
import io.kvasir.gateway.log.LogText;
import io.kvasir.gateway.metrics.SettingsCounts;
import io.kvasir.registry.FailureText;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import java.util.stream.Collectors;

/**
 * The settings of a running gateway, as operators and its file change them: all of a change or none
 * of it. Readers read the running configuration and take no lock; changes take the one of this.
 */
final class LiveSettings {
    private static final Logger LOG = LoggerFactory.getLogger(LiveSettings.class);

    /**
     * A value that is another one.
     *
     * @param model whose
     */
    record Difference(String model, Setting<?> setting, List<String> from, List<String> to) {
        @Override
        public String toString() {
            return LogText.of(
                    setting + ": " + String.join(" ", from) + " -> " + String.join(" ", to));
        }
    }

    /**
     * What a change has led to.
     *
     * @param version from now on; of a dry run, that of now
     * @param differences to the values before, of each model
     * @param warnings of what the values that follow have no effect
     */
    record Outcome(long version, List<Difference> differences, List<String> warnings) {}

    /** The version is not the one that was expected. */
    static final class OtherVersionException extends Exception {
        private static final long serialVersionUID = 1L;

        OtherVersionException(long expected, long actual) {
            super(
                    "the settings are at version "
                            + actual
                            + ", not at "
                            + expected
                            + ": they were changed in between; read them again",
                    null,
                    false,
                    false);
        }
    }

    private final GatewayConfig running;
    private final GatewayConfig started;
    private final SettingsCounts counts;
    private final List<SettingsTaker> takers = new ArrayList<>(); // guarded by this
    private SettingLayers layers; // guarded by this

    LiveSettings(GatewayConfig running, SettingsCounts counts) {
        this.running = running;
        started = running.running(); // a copy, which takes no changes
        this.counts = counts;
        layers = SettingLayers.of(running);
    }

    /** Has a part take changes from now on. */
    synchronized void add(SettingsTaker taker) {
        takers.add(taker);
    }

    /** The running configuration. */
    GatewayConfig running() {
        return running;
    }

    /** Counted from 1, by changes. */
    long version() {
        return counts.version();
    }

    /** What the file wants and only a start can give. */
    synchronized List<SettingLayers.Waiting> waiting() {
        return layers.waiting();
    }

    /** Reads several of these with no change in between. */
    synchronized <T> T atOnce(Supplier<T> reader) {
        return reader.get();
    }

    /**
     * Changes values for an operator.
     *
     * @param modelOrNull whose; null for the gateway's own
     * @param changes as of {@link SettingLayers#with}
     * @param expectedOrNull version that they are made for; null for any
     * @param isDry whether they are only checked
     * @throws IllegalArgumentException if any of it cannot be; then nothing is changed
     * @throws OtherVersionException if the version is another one
     */
    synchronized Outcome change(
            String modelOrNull,
            Map<String, List<String>> changes,
            Long expectedOrNull,
            boolean isDry)
            throws OtherVersionException {
        if (expectedOrNull != null && expectedOrNull != version()) {
            counts.refused(SettingsCounts.By.OPERATOR);
            throw new OtherVersionException(expectedOrNull, version());
        }
        try {
            return take(SettingsCounts.By.OPERATOR, layers.with(modelOrNull, changes), isDry);
        } catch (IllegalArgumentException e) {
            counts.refused(SettingsCounts.By.OPERATOR);
            throw e;
        }
    }

    /** Takes what a file says now; of one that cannot be read nothing, and the log says why. */
    synchronized void read(Callable<GatewayConfig> source) {
        try {
            final SettingLayers next = layers.read(source.call());
            take(SettingsCounts.By.FILE, next, false);
            if (!next.waiting().isEmpty()) {
                LOG.warn(
                        "the file has changed settings that only a start can apply; until then the"
                                + " values of the last start hold: {}",
                        LogText.of(
                                next.waiting().stream()
                                        .map(late -> of(late.model()) + late.setting())
                                        .collect(Collectors.joining(", "))));
            }
        } catch (Exception | Error e) { // an Error too is of this reading: those of before hold
            counts.refused(SettingsCounts.By.FILE);
            LOG.error(
                    "the settings were not read again, those of before hold: {}",
                    LogText.of(FailureText.withFile(e)));
        }
    }

    private String of(String model) {
        return model.isEmpty() || running.models().size() == 1 ? "" : model + ": ";
    }

    private Outcome take(SettingsCounts.By by, SettingLayers next, boolean isDry) {
        final GatewayConfig wanted = next.config();
        takers.forEach(taker -> taker.check(wanted));
        final List<Difference> differences = differences(wanted);
        final List<String> warnings = wanted.warningsSince(started);
        if (isDry) {
            return new Outcome(version(), differences, warnings);
        }
        layers = next;
        running.take(wanted); // sources may be others, too
        if (!differences.isEmpty()) {
            counts.changed(by);
            takers.forEach(taker -> taker.take(version()));
            LOG.info(
                    "settings are at version {}: {}",
                    version(),
                    differences.stream()
                            .map(each -> of(each.model()) + each)
                            .collect(Collectors.joining(", ")));
            warnings.forEach(warning -> LOG.warn("{}", LogText.of(warning)));
        }
        return new Outcome(version(), differences, warnings);
    }

    private List<Difference> differences(GatewayConfig wanted) {
        final List<Difference> all = new ArrayList<>();
        for (int i = 0; i < running.models().size(); i++) {
            final Settings before = running.models().get(i).settings();
            final Settings after = wanted.models().get(i).settings();
            for (Setting<?> row : before.differences(after)) {
                if (row.isLive()) {
                    all.add(
                            new Difference(
                                    after.get(GatewaySettings.MODEL),
                                    row,
                                    ConfigDump.shown(before, row),
                                    ConfigDump.shown(after, row)));
                }
            }
        }
        return all;
    }

    /** Changes the mode of every model, for the program that embeds the gateway. */
    synchronized void mode(String mode) {
        final Map<String, List<String>> change = new LinkedHashMap<>();
        change.put(RouterSettings.MODE.name(), List.of(mode));
        SettingLayers next = layers;
        for (GatewayConfig model : running.models()) {
            next = next.with(model.get(GatewaySettings.MODEL), change);
        }
        take(SettingsCounts.By.OPERATOR, next, false);
    }
}
