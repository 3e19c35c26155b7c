package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.PullStage;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.testing.Http;
import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The section of simulated engines in {@code docs/cli.md} has their calls, faults and series. */
class SimPageTest {
    private static final Pattern CASE = Pattern.compile("\"((?:GET|POST) /[a-z0-9_/]+)\"");
    private static final Pattern CALL = Pattern.compile("`((?:GET|POST) /[a-z0-9_/]+)`");
    private static final Pattern SERIES = Pattern.compile("\\bkvasir_sim_[a-z_]+");
    private static final Pattern KNOWN = Pattern.compile(" ([a-z_]+)(?: \\([^)]*\\))?(?=,|$)");

    private static String section() throws IOException {
        final String page = Files.readString(Documents.file("docs/cli.md"));
        return page.substring(page.indexOf("\n## sim\n"), page.indexOf("\n## indexer\n"));
    }

    private static Set<String> found(Pattern pattern, String text) {
        final Set<String> found = new TreeSet<>();
        pattern.matcher(text)
                .results()
                .forEach(match -> found.add(match.group(match.groupCount())));
        return found;
    }

    @Test
    void eachCallIsThere() throws IOException {
        final String source =
                Files.readString(
                        Documents.file(
                                "engine-sim/src/main/java/io/kvasir/sim/http/SimServer.java"));
        assertEquals(found(CASE, source), found(CALL, section()));
    }

    @Test
    void eachSeriesIsThere() throws IOException {
        final SimConfig.Builder config = SimConfig.builder().blockSize(4).blocks(64);
        try (SimEngine engine =
                SimEngine.start(
                        config.handoff(HandoffConfig.of(SimRole.PREFILL, SimHandoff.VLLM))
                                .build())) {
            assertEquals(found(SERIES, new Http(engine).get("/metrics")), found(SERIES, section()));
        }
    }

    @Test
    void eachFaultIsThere() throws IOException {
        final String section = section();
        try (SimEngine engine =
                SimEngine.start(SimConfig.builder().blockSize(4).blocks(64).build())) {
            final String refusal = new Http(engine).send("/sim/faults", "{}").body();
            final String known =
                    refusal.substring(refusal.indexOf("known:"), refusal.indexOf(".\""));
            final Set<String> faults = found(KNOWN, known);
            assertEquals(8, faults.size(), known);
            for (String fault : faults) {
                assertTrue(section.contains("| `{\"" + fault + "\":"), fault);
            }
        }
        Stream.of(HandoffFault.values(), PullStage.values())
                .flatMap(Stream::of)
                .map(value -> value.name().toLowerCase(Locale.ROOT))
                .forEach(word -> assertTrue(section.contains("`" + word + "`"), word));
    }
}
