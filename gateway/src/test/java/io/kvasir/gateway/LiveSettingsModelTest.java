package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.metrics.SettingsCounts;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Settings of a running gateway that operators and its file change in any order, with changes among
 * them that are refused as a whole or in part: each model has what its layers say, and a change of
 * several names is made as a whole or not at all.
 */
class LiveSettingsModelTest {
    private static final int TRIALS = Trials.of(4, 50);
    private static final int STEPS = 40;
    private static final String GATEWAY = "m";
    private static final String OTHER = "n";
    private static final Setting<?>[] ROWS = {
        RouterSettings.TEMPERATURE, RouterSettings.OVERLAP_WEIGHT, GatewaySettings.RETRIES
    };
    private static final Setting<?> LATE = GatewaySettings.TEMPLATE_MAX_DEPTH;
    private static final String REFUSED = "7"; // by a part, in any row of the first model

    /** What a layer says: texts by row. */
    private static final class Layers {
        final Map<String, Map<Setting<?>, String>> file = layer();
        final Map<String, Map<Setting<?>, String>> operators = layer();

        private static Map<String, Map<Setting<?>, String>> layer() {
            final Map<String, Map<Setting<?>, String>> layer = new HashMap<>();
            layer.put(GATEWAY, new HashMap<>());
            layer.put(OTHER, new HashMap<>());
            return layer;
        }

        Layers copy() {
            final Layers copy = new Layers();
            file.forEach((model, rows) -> copy.file.get(model).putAll(rows));
            operators.forEach((model, rows) -> copy.operators.get(model).putAll(rows));
            return copy;
        }

        String of(String model, Setting<?> row) {
            for (Map<String, Map<Setting<?>, String>> layer : List.of(operators, file)) {
                final String text = layer.get(model).get(row);
                if (text != null) {
                    return text;
                }
            }
            return model.equals(OTHER) ? of(GATEWAY, row) : null;
        }

        List<Object> all() {
            final List<Object> all = new ArrayList<>();
            for (String model : List.of(GATEWAY, OTHER)) {
                for (Setting<?> row : ROWS) {
                    final String text = of(model, row);
                    all.add(text == null ? row.usual() : row.parse(List.of(text)));
                }
            }
            return all;
        }

        boolean isRefused() {
            for (Setting<?> row : ROWS) {
                if (REFUSED.equals(of(GATEWAY, row))) {
                    return true;
                }
            }
            return false;
        }
    }

    /** One gateway's life. */
    private static final class Life {
        private final Random random;
        private final SettingsCounts counts = new SettingsCounts();
        private final LiveSettings settings;
        private final List<Long> taken = new ArrayList<>();
        private Layers layers = new Layers();
        private String late;
        private long version = 1;
        private int byOperators;
        private int byFile;

        Life(Random random) {
            this.random = random;
            settings = new LiveSettings(config(layers, null).running(), counts);
            settings.add(
                    new SettingsTaker() {
                        @Override
                        public void check(GatewayConfig wanted) {
                            for (Setting<?> row : ROWS) {
                                if (wanted.get(row).equals(row.parse(List.of(REFUSED)))) {
                                    throw new IllegalArgumentException("a part refuses " + row);
                                }
                            }
                        }

                        @Override
                        public void take(long now) {
                            taken.add(now);
                            assertEquals(layers.all(), running());
                        }
                    });
        }

        private static GatewayConfig config(Layers layers, String late) {
            final GatewayConfig.Builder config =
                    GatewayConfig.builder()
                            .set(GatewaySettings.MODEL, GATEWAY)
                            .worker(WorkerConfig.parse("http://h:1"));
            layers.file.get(GATEWAY).forEach((row, text) -> config.flag(row, List.of(text)));
            if (late != null) {
                config.flag(LATE, List.of(late));
            }
            final StringBuilder own = new StringBuilder("name=" + OTHER);
            layers.file
                    .get(OTHER)
                    .forEach((row, text) -> own.append(',').append(row).append('=').append(text));
            return config.set(GatewaySettings.MODELS, List.of(ModelConfig.parse(own.toString())))
                    .build();
        }

        private List<Object> running() {
            final List<Object> all = new ArrayList<>();
            for (GatewayConfig model : settings.running().models()) {
                for (Setting<?> row : ROWS) {
                    all.add(model.get(row));
                }
            }
            return all;
        }

        private String value() {
            return String.valueOf(random.nextInt(8));
        }

        void step() {
            if (random.nextInt(4) == 0) {
                read();
            } else {
                change();
            }
            assertEquals(layers.all(), running());
            assertEquals(version, settings.version());
            assertEquals(late == null ? 0 : 1, settings.waiting().size());
            assertEquals(byOperators, counts.count(SettingsCounts.By.OPERATOR, true));
            assertEquals(byFile, counts.count(SettingsCounts.By.FILE, true));
        }

        private void read() {
            final Layers next = layers.copy();
            String nextLate = late;
            for (Setting<?> row : ROWS) {
                for (String model : List.of(GATEWAY, OTHER)) {
                    if (random.nextInt(3) == 0 && isOf(model, row)) {
                        put(next.file.get(model), row, random.nextInt(3) == 0 ? null : value());
                    }
                }
            }
            if (random.nextInt(4) == 0) {
                nextLate = random.nextBoolean() ? null : "99";
            }
            final boolean fails = random.nextInt(4) == 0;
            final String wanted = nextLate;
            final boolean refused = fails || next.isRefused();
            if (refused) {
                byFile++;
            } else {
                late = nextLate;
            }
            follow(
                    refused ? layers : next,
                    () ->
                            settings.read(
                                    () -> {
                                        if (fails) {
                                            throw new IllegalStateException("of the test");
                                        }
                                        return config(next, wanted);
                                    }));
        }

        private static boolean isOf(String model, Setting<?> row) {
            return model.equals(GATEWAY) || row != GatewaySettings.RETRIES;
        }

        private static void put(Map<Setting<?>, String> rows, Setting<?> row, String textOrNull) {
            if (textOrNull == null) {
                rows.remove(row);
            } else {
                rows.put(row, textOrNull);
            }
        }

        private void change() {
            final Layers next = layers.copy();
            final String model = random.nextInt(3) == 0 ? OTHER : GATEWAY;
            final Map<String, List<String>> changes = new LinkedHashMap<>();
            boolean wrong = false;
            for (int i = 1 + random.nextInt(3); i > 0; i--) {
                final Setting<?> row = ROWS[random.nextInt(ROWS.length)];
                final String text = random.nextInt(4) == 0 ? null : value();
                changes.put(row.name(), text == null ? null : List.of(text));
                put(next.operators.get(model), row, text);
                wrong |= !isOf(model, row);
            }
            switch (random.nextInt(6)) {
                case 0 -> {
                    changes.put("no-such-setting", List.of("1"));
                    wrong = true;
                }
                case 1 -> {
                    changes.put(LATE.name(), List.of("9"));
                    wrong = true;
                }
                case 2 -> {
                    changes.put(RouterSettings.MAX_ACTIVE_REQUESTS.name(), List.of("x"));
                    wrong = true;
                }
                default -> {}
            }
            final Long expected =
                    random.nextInt(3) == 0 ? (Long) (version - random.nextInt(2)) : null;
            final boolean isDry = random.nextInt(5) == 0;
            final String named = model.equals(GATEWAY) && random.nextBoolean() ? null : model;
            if (expected != null && expected != version) {
                byOperators++;
                assertThrows(
                        LiveSettings.OtherVersionException.class,
                        () -> settings.change(named, changes, expected, isDry));
            } else if (wrong || next.isRefused()) {
                byOperators++;
                assertThrows(
                        IllegalArgumentException.class,
                        () -> settings.change(named, changes, expected, isDry));
            } else {
                follow(
                        isDry ? layers : next,
                        () -> {
                            try {
                                settings.change(named, changes, expected, isDry);
                            } catch (LiveSettings.OtherVersionException e) {
                                throw new AssertionError(e);
                            }
                        });
            }
        }

        /** Does a step after which the layers are others. */
        private void follow(Layers next, Runnable step) {
            final boolean differs = !next.all().equals(layers.all());
            final int before = taken.size();
            layers = next;
            version += differs ? 1 : 0;
            step.run();
            assertEquals(
                    differs ? List.of(version) : List.of(), taken.subList(before, taken.size()));
        }
    }

    @Tag("trials")
    @Test
    void aChangeIsMadeAsAWholeOrNotAtAll() {
        final long seed = Seeds.next("LiveSettingsModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            int step = 0;
            try {
                final Life life = new Life(new Random(seed + trial));
                for (; step < STEPS; step++) {
                    life.step();
                }
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError("seed " + (seed + trial) + ", step " + step, e);
            }
        }
    }
}
