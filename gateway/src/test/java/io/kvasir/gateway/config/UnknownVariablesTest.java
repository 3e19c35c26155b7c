package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.settings.ServiceLinks;
import io.kvasir.router.settings.Setting;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

class UnknownVariablesTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    private static List<String> warnings(String name, String value) {
        return UnknownVariables.warnings(Map.of(name, value));
    }

    @ParameterizedTest
    @CsvSource({
        "KVASIR_TEMPERATUR, KVASIR_TEMPERATURE",
        "KVASIR_MAX_WORKER, KVASIR_MAX_WORKERS",
        "KVASIR_NO_KV_EVENTS, KVASIR_KV_EVENTS",
        "KVASIR_ADMN_PORT, KVASIR_ADMIN_PORT"
    })
    void whatIsMistypedIsWarnedOfWithTheNearest(String name, String nearest) {
        assertEquals(
                List.of(
                        name
                                + " has no effect: no setting has this variable; the nearest is "
                                + nearest),
                warnings(name, "s3cret"));
    }

    @Test
    void eachIsNamedInOrder() {
        final List<String> all =
                UnknownVariables.warnings(
                        Map.of("KVASIR_B0GUS", "1", "KVASIR_A_BOGUS", "1", "BOGUS", "1"));
        assertEquals(2, all.size());
        assertTrue(all.getFirst().startsWith("KVASIR_A_BOGUS has"), all.getFirst());
    }

    @ParameterizedTest
    @CsvSource({
        "KVASIR_SERVICE_HOST, 10.0.0.1",
        "KVASIR_SERVICE_PORT, 8000",
        "KVASIR_SERVICE_PORT_HTTP, 8000",
        "KVASIR_PORT, tcp://10.0.0.1:8000",
        "KVASIR_PORT_8000_TCP, tcp://10.0.0.1:8000",
        "KVASIR_PORT_8000_TCP_PROTO, tcp",
        "KVASIR_PORT_53_UDP_PORT, 53",
        "KVASIR_PORT_8000_TCP_ADDR, 10.0.0.1",
        "KVASIR_ADMIN_SERVICE_HOST, 10.0.0.1",
        "KVASIR_ENGINES_PORT, tcp://10.0.0.1:8000"
    })
    void serviceLinksOfKubernetesAreLeftAlone(String name, String value) {
        assertEquals(List.of(), warnings(name, value));
        assertTrue(ServiceLinks.isOne(name, value));
    }

    @ParameterizedTest
    @ValueSource(strings = {"kvasir", "docs/cli.md", "docs/operations/flags.md", "bench/run"})
    void whatTheLauncherAndTheDocumentsNameIsKnown(String file) throws IOException {
        final TreeSet<String> named =
                Pattern.compile("\\bKVASIR_[A-Z_]+\\b")
                        .matcher(Files.readString(ROOT.resolve(file)))
                        .results()
                        .map(MatchResult::group)
                        .collect(Collectors.toCollection(TreeSet::new));
        assertFalse(named.isEmpty());
        named.forEach(name -> assertEquals(List.of(), warnings(name, "x"), file));
    }

    @Test
    void everyVariableOfASettingIsKnownAndNoServiceLink() {
        for (Setting<?> row : GatewaySettings.TABLE.rows()) {
            for (List<String> names : List.of(row.variables(), row.formerVariables())) {
                for (String name : names) {
                    assertEquals(List.of(), warnings(name, "x"));
                    assertFalse(ServiceLinks.isOne(name, "x"), name);
                }
            }
        }
    }

    @Test
    void whatIsBlankSetsNothing() {
        assertEquals(List.of(), warnings("KVASIR_TEMPERATUR", " "));
    }
}
