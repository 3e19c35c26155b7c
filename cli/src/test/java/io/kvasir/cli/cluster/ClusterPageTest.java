package io.kvasir.cli.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.cli.KvasirProcess;
import io.kvasir.testsupport.Documents;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.RunningNats;

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
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/** The commands of docs/operations/cluster.md, on other ports. */
@Tag("integration") // starts servers and JVMs
class ClusterPageTest {
    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir Path folder;

    private final HttpClient http = HttpClient.newHttpClient();
    private final Map<String, Integer> ports = new LinkedHashMap<>();

    private static List<String> commands() throws IOException {
        final String page = Files.readString(Documents.file("docs/operations/cluster.md"));
        final int from = page.indexOf("<!-- commands -->");
        return page.substring(from, page.indexOf("<!-- commands end -->"))
                .lines()
                .filter(line -> line.startsWith("nats-server") || line.startsWith("./kvasir"))
                .toList();
    }

    /** The same command with free ports for those of the page. */
    private String[] onFreePorts(String command) {
        String moved = command;
        for (Map.Entry<String, Integer> port : ports.entrySet()) {
            moved =
                    Pattern.compile("(?<=[ :])" + port.getKey() + "(?=[ ,]|$)")
                            .matcher(moved)
                            .replaceAll(port.getValue().toString());
        }
        final String[] words = moved.split(" ", -1);
        return Arrays.copyOfRange(words, 1, words.length);
    }

    private JsonNode get(String port, String path) throws IOException, InterruptedException {
        final URI uri = URI.create("http://127.0.0.1:" + ports.get(port) + path);
        return JSON.readTree(
                http.send(HttpRequest.newBuilder(uri).build(), HttpResponse.BodyHandlers.ofString())
                        .body());
    }

    @Test
    void theCommandsOfThePageMakeTwoGatewaysThatKnowTheSame() throws Exception {
        final List<String> commands = commands();
        assertEquals("nats-server -js", commands.getFirst());
        final List<KvasirProcess> running = new ArrayList<>();
        final NatsServer nats = RunningNats.started(folder); // with -js
        final int engines = FreePorts.run(2);
        final int events = FreePorts.run(4);
        ports.put("4222", nats.port());
        for (int i = 0; i < 2; i++) {
            ports.put(Integer.toString(9000 + i), engines + i);
            ports.put(Integer.toString(8000 + i), FreePorts.run(1));
            ports.put(Integer.toString(8100 + i), FreePorts.run(1));
        }
        for (int i = 0; i < 4; i++) {
            ports.put(Integer.toString(9100 + i), events + i);
        }
        try {
            for (String command : commands.subList(1, commands.size())) {
                final KvasirProcess process = new KvasirProcess(onFreePorts(command));
                running.add(process);
                if (command.startsWith("./kvasir serve")) {
                    process.await(line -> line.startsWith("running"));
                } else if (command.startsWith("./kvasir relay")) {
                    process.await(line -> line.startsWith("relaying"));
                }
            }
            serve();
            Eventually.until(() -> "both know the same: " + pages(), this::bothKnow);
        } finally {
            running.forEach(KvasirProcess::close);
            nats.close();
        }
    }

    private void serve() throws IOException, InterruptedException {
        final HttpRequest request =
                HttpRequest.newBuilder(
                                URI.create(
                                        "http://127.0.0.1:"
                                                + ports.get("8000")
                                                + "/v1/completions"))
                        .header("Content-Type", "application/json")
                        .POST(
                                HttpRequest.BodyPublishers.ofString(
                                        "{\"model\":\"m\",\"max_tokens\":4,\"prompt\":"
                                                + Arrays.toString(new int[64])
                                                + "}"))
                        .build();
        final HttpResponse<String> answer =
                http.send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
    }

    private String pages() {
        try {
            return get("8100", "/debug/workers") + " " + get("8101", "/debug/workers");
        } catch (IOException | InterruptedException e) {
            return e.toString();
        }
    }

    /** Whether both gateways see each other and have the prompt's blocks. */
    private boolean bothKnow() throws IOException, InterruptedException {
        for (String port : List.of("8100", "8101")) {
            final JsonNode page = get(port, "/debug/workers");
            int blocks = 0;
            for (JsonNode worker : page.path("workers")) {
                blocks += worker.path("index_blocks").asInt();
            }
            if (blocks < 4
                    || page.at("/replicas/heard_of").asInt() != 1
                    || page.at("/event_plane/streams").asInt() != 2) {
                return false;
            }
        }
        return true;
    }
}
