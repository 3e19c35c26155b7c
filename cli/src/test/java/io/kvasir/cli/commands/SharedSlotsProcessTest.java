package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.KvasirProcess;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/** Processes of {@code kvasir slots} that share their requests over a real NATS server. */
@Tag("integration") // starts a server
class SharedSlotsProcessTest {

    @RegisterExtension final RunningNats nats = new RunningNats();

    private final HttpClient http = HttpClient.newHttpClient();
    private final List<Tracker> trackers = new ArrayList<>();

    /** One process, with a worker of one rank. */
    private final class Tracker {
        final KvasirProcess process;
        private final String base;

        Tracker(int id) throws Exception {
            process =
                    new KvasirProcess(
                            "slots",
                            "--host=127.0.0.1",
                            "--port=0",
                            "--replica-sync",
                            "--nats=" + nats.url(),
                            "--replica-id=" + id,
                            "--replica-digest-ms=100",
                            "--replica-lease-ms=2000");
            trackers.add(this);
            final String line = process.await(l -> l.startsWith("slots listening on "));
            base = "http://" + line.substring(line.lastIndexOf(' ') + 1);
            post(
                    "/register",
                    "{\"worker_id\":7,\"model_name\":\"m\",\"block_size\":4,\"dp_start\":0,"
                            + "\"dp_size\":1}");
        }

        void post(String path, String body) throws Exception {
            final HttpResponse<String> answer = send(path, body);
            assertTrue(answer.statusCode() < 300, answer::body);
        }

        HttpResponse<String> send(String path, String body) throws Exception {
            final HttpRequest.Builder request =
                    HttpRequest.newBuilder(URI.create(base + path))
                            .header("Content-Type", "application/json");
            return http.send(
                    body == null
                            ? request.GET().build()
                            : request.POST(HttpRequest.BodyPublishers.ofString(body)).build(),
                    HttpResponse.BodyHandlers.ofString());
        }

        void add(String id, String hashes, int tokens) throws Exception {
            post(
                    "/add",
                    "{\"request_id\":\""
                            + id
                            + "\",\"worker_id\":7,\"dp_rank\":0,\"model_name\":\"m\","
                            + "\"sequence_hashes\":["
                            + hashes
                            + "],\"new_isl_tokens\":"
                            + tokens
                            + "}");
        }

        void ends(String path, String id) throws Exception {
            post(path, "{\"request_id\":\"" + id + "\",\"model_name\":\"m\"}");
        }

        void awaitLoad(int tokens, int blocks) throws Exception {
            await(
                    "/loads",
                    null,
                    "\"active_prefill_tokens\":"
                            + tokens
                            + ",\"active_decode_blocks\":"
                            + blocks
                            + "}");
        }

        void await(String path, String body, String part) throws Exception {
            final AtomicReference<String> text = new AtomicReference<>();
            Eventually.until(
                    () -> text.get() + " has " + part,
                    () -> {
                        text.set(send(path, body).body());
                        return text.get().contains(part);
                    });
        }
    }

    @AfterEach
    void stop() throws InterruptedException {
        trackers.forEach(tracker -> tracker.process.close());
        http.close();
    }

    @Test
    void eachSeesTheRequestsOfAllUntilTheyEndOrWhoReservedThemIsKilled() throws Exception {
        final Tracker one = new Tracker(1);
        final Tracker two = new Tracker(2);
        one.await("/replica_sync/status", null, "\"peers\":1");
        one.add("a", "11,12", 8);
        two.awaitLoad(8, 2);
        two.await(
                "/potential_loads",
                "{\"model_name\":\"m\",\"sequence_hashes\":[11,13],\"new_isl_tokens\":9}",
                "\"potential_prefill_tokens\":17,\"potential_decode_blocks\":3,"
                        + "\"active_requests\":1");
        one.ends("/prefill_complete", "a");
        two.awaitLoad(0, 2);
        two.add("b", "11,13", 5);
        one.awaitLoad(5, 3);
        final Tracker late = new Tracker(3);
        late.awaitLoad(5, 3);
        one.ends("/free", "a");
        late.awaitLoad(5, 2);
        two.awaitLoad(5, 2);
        one.add("c", "21", 7);
        late.awaitLoad(12, 3);
        one.process.close(); // SIGKILL
        late.awaitLoad(5, 2);
        two.awaitLoad(5, 2);
        final Tracker again = new Tracker(1);
        again.awaitLoad(5, 2);
        assertEquals(143, two.process.terminate());
        late.awaitLoad(0, 0);
        assertEquals(
                409,
                late.send("/replica_sync/register_peer", "{\"endpoint\":\"tcp://a:1\"}")
                        .statusCode());
    }

    @Test
    void aServerThatIsAwayDelaysNoAnswerAndWhatWasMissedComesWhenItIsBack() throws Exception {
        final Tracker one = new Tracker(1);
        final Tracker two = new Tracker(2);
        one.add("a", "11,12", 8);
        two.awaitLoad(8, 2);
        nats.server().stop();
        one.add("b", "21", 4);
        one.awaitLoad(12, 3);
        nats.server().start();
        two.awaitLoad(12, 3);
    }
}
