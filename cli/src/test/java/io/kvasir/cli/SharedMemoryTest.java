package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.SimConfig;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Two gateways of one host, as processes with the launcher's flags. */
@Tag("integration") // starts JVMs
class SharedMemoryTest {
    private static final Path ROOT = Path.of(System.getProperty("kvasir.root"));

    @TempDir private Path temp;
    private final HttpClient http = HttpClient.newHttpClient();

    private static List<String> flags() throws IOException {
        return List.of(
                Files.readString(ROOT.resolve("pom.xml"))
                        .split("<chronicle.flags>|</chronicle.flags>", -1)[1]
                        .split(" ", -1));
    }

    private KvasirProcess serve(SimEngine engine, String name, String... more) throws IOException {
        final List<String> args =
                new ArrayList<>(
                        List.of(
                                "serve",
                                "--model",
                                "kvasir-sim",
                                "--tokenizer",
                                "sim",
                                "--port",
                                "0",
                                "--admin-port",
                                "0",
                                "--warm-up-ms",
                                "0",
                                "--lame-duck-ms",
                                "0",
                                "--shared-memory-dir",
                                temp.resolve("shared").toString(),
                                "--state-dir",
                                temp.resolve(name).toString(),
                                "--worker",
                                engine.url()
                                        + ",name=w,events="
                                        + engine.eventsEndpoint(0)
                                        + ",replay="
                                        + engine.replayEndpoint(0)));
        args.addAll(List.of(more));
        return new KvasirProcess(flags(), args.toArray(String[]::new));
    }

    private static URI after(KvasirProcess process, String words) throws InterruptedException {
        final String line = process.await(l -> l.contains(words));
        return URI.create(line.substring(line.indexOf(words) + words.length()).strip());
    }

    private String chat(URI gateway, String tenant, String system) throws Exception {
        final HttpResponse<String> answer =
                http.send(
                        HttpRequest.newBuilder(gateway.resolve("/v1/chat/completions"))
                                .header("x-tenant", tenant)
                                .POST(
                                        HttpRequest.BodyPublishers.ofString(
                                                "{\"model\":\"kvasir-sim\",\"max_tokens\":2,"
                                                    + "\"messages\":[{\"role\":\"system\",\"content\":\""
                                                        + system
                                                        + "\"},{\"role\":\"user\",\"content\":\"hi\"}]}"))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        return answer.body();
    }

    private long memo(URI admin, String event) throws Exception {
        final String page =
                http.send(
                                HttpRequest.newBuilder(admin.resolve("/metrics")).build(),
                                HttpResponse.BodyHandlers.ofString())
                        .body();
        return page.lines()
                .filter(l -> l.startsWith("kvasir_prompt_memo_total{event=\"" + event + "\"}"))
                .mapToLong(l -> (long) Double.parseDouble(l.substring(l.lastIndexOf(' '))))
                .findFirst()
                .orElseThrow(() -> new AssertionError(page));
    }

    @Test
    void whatOneHasTokenizedTheOtherFindsAndWhatItHasSavedIsShown() throws Exception {
        final String system = "Say only what is known. ".repeat(200);
        try (SimEngine engine =
                        SimEngine.start(
                                SimConfig.builder()
                                        .blocks(2_000)
                                        .prefillTokensPerSecond(10_000_000)
                                        .interTokenMillis(0.01)
                                        .build());
                KvasirProcess first = serve(engine, "first", "--tenant-header", "x-tenant");
                KvasirProcess second = serve(engine, "second", "--tenant-header", "x-tenant")) {
            final URI one = after(first, "listening on ");
            final URI oneAdmin = after(first, "admin on ");
            final URI other = after(second, "listening on ");
            final URI otherAdmin = after(second, "admin on ");
            chat(one, "a", system);
            assertEquals(1, memo(oneAdmin, "miss"));
            chat(other, "a", system);
            assertEquals(1, memo(otherAdmin, "hit"), "another process has tokenized it");
            assertEquals(0, memo(otherAdmin, "miss"));
            chat(other, "b", system);
            assertEquals(1, memo(otherAdmin, "hit"), "another tenant finds nothing");
            assertEquals(1, memo(otherAdmin, "miss"));
            assertEquals(0, memo(otherAdmin, "error"));
            assertEquals(0, first.terminate());
            // the second one still runs; the first has saved when it ended
            try (KvasirProcess shown =
                    new KvasirProcess(flags(), "shared", temp.resolve("shared").toString())) {
                final String row = shown.await(l -> l.contains(" w/0 "));
                assertTrue(row.contains(engine.url().toString()), row);
                shown.await(l -> l.contains("prefixes-") && l.contains("first"));
                assertEquals(0, shown.exitCode());
            }
            chatsStillFindWhatWasShared(engine, system);
        }
    }

    private void chatsStillFindWhatWasShared(SimEngine engine, String system) throws Exception {
        try (KvasirProcess third = serve(engine, "third", "--tenant-header", "x-tenant")) {
            final URI url = after(third, "listening on ");
            final URI admin = after(third, "admin on ");
            chat(url, "a", system);
            assertEquals(1, memo(admin, "hit"));
        }
    }

    @Test
    void withoutTheFlagsTheGatewaySaysWhichAreMissing() throws Exception {
        try (KvasirProcess process =
                new KvasirProcess(
                        "serve",
                        "--model",
                        "m",
                        "--tokenizer",
                        "sim",
                        "--port",
                        "0",
                        "--admin-port",
                        "0",
                        "--worker",
                        "http://127.0.0.1:1",
                        "--shared-memory-dir",
                        temp.resolve("shared").toString())) {
            process.await(l -> l.contains("--add-opens=java.base/java.lang=ALL-UNNAMED"));
            assertEquals(3, process.exitCode());
        }
    }
}
