package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.SimFleet;
import io.kvasir.gateway.upstream.UpstreamHealth;
import io.kvasir.router.Decision;
import io.kvasir.router.PromptEnd;
import io.kvasir.router.disagg.SplitMode;
import io.kvasir.router.load.BusyState;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.testsupport.Documents;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** {@code docs/operations/admin-pages.md} has each member of the debug pages, and no other. */
class AdminPagesDocumentTest {
    private static final Pattern WORD = Pattern.compile("`([a-zA-Z_.\\[\\]]+)`");

    /** What is in them has names of its own: settings, reasons, sources. */
    private static final Set<String> MAPS =
            Set.of(
                    "queues.POOL.limits",
                    "queues.POOL.refused",
                    "workers[].events.drops",
                    "workers[].load_report_age_ms",
                    "event_plane.unknown_workers[]");

    private final Set<String> seen = new TreeSet<>();

    private static String page() throws IOException {
        return Files.readString(Documents.file("docs/operations/admin-pages.md"));
    }

    /** What is in the first cells of the tables; without what needs a NATS server. */
    private static Set<String> documented() throws IOException {
        final Set<String> members = new TreeSet<>();
        page().lines()
                .filter(line -> line.startsWith("| `"))
                .map(line -> line.split(" \\| ", -1)[0])
                .flatMap(cell -> WORD.matcher(cell).results())
                .forEach(word -> assertTrue(members.add(word.group(1)), word.group()));
        assertTrue(members.remove("replicas"));
        return members;
    }

    @Test
    void eachMemberOfTheDebugPagesIsDescribed() throws Exception {
        final Set<String> documented = documented();
        try (SimFleet fleet = new SimFleet(SimHandoff.VLLM)) {
            final GatewayConfig.Builder config = Gateways.config();
            fleet.workers(SimHandoff.VLLM).forEach(config::worker);
            config.set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n")))
                    .set(GatewaySettings.SPLIT_MODE, SplitMode.COST)
                    .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.ZMQ)
                    .set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.of("tcp://127.0.0.1:1"))
                    .set(RouterSettings.QUEUE_PREFILL_TOKENS, 1L << 40)
                    .set(RouterSettings.ENGINE_LOAD, true);
            try (GatewayServer gateway = GatewayServer.start(config.build())) {
                Gateways.awaitContact(gateway);
                Gateways.post(
                        gateway, "/v1/completions", "{\"max_tokens\":2,\"prompt\":[1,2,3,4]}");
                Eventually.until(
                        () -> difference(documented),
                        () -> {
                            collect("", get(gateway, "/debug/workers"));
                            collect("", get(gateway, "/debug/decisions?limit=9"));
                            return documented.equals(seen);
                        });
            }
        }
    }

    private String difference(Set<String> documented) {
        final Set<String> undocumented = new TreeSet<>(seen);
        undocumented.removeAll(documented);
        final Set<String> unseen = new TreeSet<>(documented);
        unseen.removeAll(seen);
        return "not on the page: " + undocumented + ", not on the gateway's: " + unseen;
    }

    private static JsonNode get(GatewayServer gateway, String path) throws Exception {
        return Json.MAPPER.readTree(Gateways.admin(gateway, path).body());
    }

    private void collect(String path, JsonNode value) {
        if (!path.isEmpty() && !path.equals("queues")) {
            seen.add(path);
        }
        if (MAPS.contains(path)) {
            return;
        }
        value.properties()
                .forEach(member -> collect(joined(path, member.getKey()), member.getValue()));
        if (value.isArray()) {
            seen.remove(path);
            final String each = path + "[]";
            seen.add(each);
            value.forEach(item -> collect(each, item));
        }
    }

    /** The pools have the same members, and so have the routers of each model. */
    private static String joined(String path, String name) {
        if (path.equals("queues")) {
            return "queues.POOL";
        }
        if (path.equals("models[]") && !name.equals("model")) {
            return name;
        }
        return path.isEmpty() ? name : path + "." + name;
    }

    @Test
    void eachValueOfTheWordsIsDescribed() throws IOException {
        final String page = page();
        Stream.of(
                        PromptEnd.values(),
                        Decision.Exclusion.values(),
                        UpstreamHealth.State.values(),
                        BusyState.values(),
                        LoadSource.values())
                .flatMap(Stream::of)
                .filter(value -> value != Decision.Exclusion.NONE)
                .map(value -> value.name().toLowerCase(Locale.ROOT))
                .forEach(
                        word ->
                                assertTrue(
                                        page.contains("`" + word + "`")
                                                || page.contains(
                                                        "`" + word.replace('_', '-') + "`"),
                                        word));
    }
}
