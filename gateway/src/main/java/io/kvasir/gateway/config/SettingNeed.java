package io.kvasir.gateway.config;

import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Rows that mean something only beside others. A row may be in several: it needs all of them.
 *
 * @param rows that were set
 * @param needs the others, in words
 * @param isMet whether they are so for a model; for one of several is enough
 * @param isOfStart whether the values of the start decide, and later ones do not
 */
record SettingNeed(
        List<Setting<?>> rows, String needs, Predicate<GatewayConfig> isMet, boolean isOfStart) {
    static SettingNeed of(String needs, Predicate<GatewayConfig> isMet, Setting<?>... rows) {
        return new SettingNeed(List.of(rows), needs, isMet, false);
    }

    static SettingNeed ofStart(String needs, Predicate<GatewayConfig> isMet, Setting<?>... rows) {
        return new SettingNeed(List.of(rows), needs, isMet, true);
    }

    /** Those of the rows of routers, and those of the gateway's own. */
    static Stream<SettingNeed> all() {
        return Stream.concat(RouterNeeds.ALL.stream(), GatewayNeeds.ALL.stream());
    }

    /**
     * What is set and has no effect, in words.
     *
     * @param started what the gateway was started with; {@code config} of one that is not started
     */
    static List<String> unmet(GatewayConfig config, GatewayConfig started) {
        final List<String> unmet = new ArrayList<>();
        all().forEach(
                        need -> {
                            final List<Setting<?>> rows = need.setIn(config.given());
                            if (!rows.isEmpty() && !need.isMetBy(config, started)) {
                                unmet.add(need.words(rows));
                            }
                        });
        return unmet;
    }

    private List<Setting<?>> setIn(Settings given) {
        return rows.stream()
                .filter(
                        row ->
                                given.source(row) != Settings.Source.DEFAULT
                                        && !given.get(row).equals(row.usual()))
                .toList();
    }

    private boolean isMetBy(GatewayConfig config, GatewayConfig started) {
        return (isOfStart ? started : config).models().stream().anyMatch(isMet);
    }

    private String words(List<Setting<?>> unused) {
        return unused.stream().map(Setting::name).collect(Collectors.joining(", "))
                + (unused.size() == 1 ? " has" : " have")
                + " no effect without "
                + needs;
    }
}
