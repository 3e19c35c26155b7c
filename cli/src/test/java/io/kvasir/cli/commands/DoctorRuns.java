package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.Json;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;

/** Runs of kvasir doctor, and what is said of their outcomes. */
final class DoctorRuns {
    static final String LONG = "--timeout-s=60";

    /** Where something is waited for that does not come; the rest comes within it if it can. */
    static final String SHORT = "--timeout-s=3";

    private static final String MIDDLING = "--timeout-s=12";

    static final int BLOCK = 16;

    private DoctorRuns() {}

    static SimEngine engine(SimConfig.Builder config) {
        return SimEngine.start(config.speedUp(100).build());
    }

    static String spec(SimEngine engine) {
        return engine.url()
                + ",name=e,events="
                + engine.eventsEndpoint(0)
                + ",replay="
                + engine.replayEndpoint(0);
    }

    static CommandRun doctor(String... words) {
        final List<String> all = new ArrayList<>(List.of("doctor"));
        all.addAll(List.of(words));
        return CommandRun.of(all.toArray(String[]::new));
    }

    /**
     * Tests an engine of which something does not come: {@link #SHORT} is enough to see that,
     * unless the machine is so busy that what does come is late, too.
     *
     * @param expected what is asserted of a run, which is made again with {@link #MIDDLING}, and
     *     then with {@link #LONG}, if it fails
     * @param words of the command
     */
    static void assertOfSilence(Consumer<CommandRun> expected, String... words) {
        final List<String> all = new ArrayList<>(List.of(words));
        all.add(SHORT);
        for (String longer : List.of(MIDDLING, LONG)) {
            try {
                expected.accept(doctor(all.toArray(String[]::new)));
                return;
            } catch (AssertionError e) {
                all.set(all.size() - 1, longer);
            }
        }
        expected.accept(doctor(all.toArray(String[]::new)));
    }

    /** Outcomes of the first engine, by check. */
    static Map<String, JsonNode> checks(CommandRun run) {
        return outcomes("engines", 0, run);
    }

    /** Outcomes of the store of a number, by check; the last one of each. */
    static Map<String, JsonNode> store(int number, CommandRun run) {
        return outcomes("stores", number, run);
    }

    private static Map<String, JsonNode> outcomes(String list, int number, CommandRun run) {
        final Map<String, JsonNode> checks = new TreeMap<>();
        for (JsonNode check : Json.parse(run.out()).path(list).path(number).path("checks")) {
            checks.put(check.path("check").asText(), check);
        }
        return checks;
    }

    static void assertResult(String result, String check, Map<String, JsonNode> checks) {
        assertEquals(
                result,
                checks.getOrDefault(check, Json.object()).path("result").asText(),
                check + " in " + checks);
    }

    static void assertFailed(
            String check, String seen, String remedy, Map<String, JsonNode> checks) {
        assertResult("FAIL", check, checks);
        assertTrue(checks.get(check).path("seen").asText().contains(seen), checks.toString());
        assertTrue(checks.get(check).path("remedy").asText().contains(remedy), checks.toString());
    }

    /** Tests what a configuration names. */
    static CommandRun ofConfiguration(Path folder, String text, String limit) throws IOException {
        return doctor(configuration(folder, text), "--json", limit);
    }

    static String configuration(Path folder, String text) throws IOException {
        return Files.writeString(folder.resolve("gateway.yaml"), text).toString();
    }
}
