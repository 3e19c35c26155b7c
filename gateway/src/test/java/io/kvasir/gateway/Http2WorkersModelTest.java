package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.UpstreamHttp2;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.FrameEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.http2.frames.SettingsFrame;
import org.eclipse.jetty.util.Callback;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Workers of HTTP/2 that reset streams, end and lose connections and take back how many streams
 * they carry, at any moment, while clients leave: a client that stays has all of its own answer
 * once, whole events of it and one error event, or an error; nothing is left, and the workers are
 * used again once they answer.
 */
class Http2WorkersModelTest {
    private static final int REQUESTS = 80;
    private static final int AT_ONCE = 12;
    private static final String PATH = "/v1/completions";
    private static final Pattern NUMBER = Pattern.compile("\"prompt\":\\[(\\d+)]");
    private static final ErrorCode[] CODES = {
        ErrorCode.NO_ERROR,
        ErrorCode.INTERNAL_ERROR,
        ErrorCode.REFUSED_STREAM_ERROR,
        ErrorCode.CANCEL_STREAM_ERROR,
        ErrorCode.ENHANCE_YOUR_CALM_ERROR
    };
    private static final int[] STREAMS = {0, 1, 3, 128};

    private final long seed = Seeds.next("Http2WorkersModelTest");
    private final Random random = new Random(seed);
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final Map<Integer, Integer> attempts = new ConcurrentHashMap<>(); // by number
    private final FrameEngine a = new FrameEngine(1 + random.nextInt(8), this::serve);
    private final FrameEngine b = new FrameEngine(128, this::serve);
    private volatile boolean peace;

    private GatewayConfig.Builder config() {
        return Gateways.config(a.worker("a"), b.worker("b"))
                .set(GatewaySettings.UPSTREAM_HTTP2, UpstreamHttp2.PRIOR_KNOWLEDGE)
                .set(RouterSettings.MODE, RoutingMode.ROUND_ROBIN)
                .set(GatewaySettings.RETRIES, 2)
                .set(GatewaySettings.RETRY_BACKOFF, Duration.ofMillis(random.nextInt(3)))
                .set(GatewaySettings.BREAKER_FAULTS, 1_000)
                .set(GatewaySettings.DECISION_LOG_SIZE, 1 << 16)
                .set(GatewaySettings.FIRST_BYTE_TIMEOUT, Duration.ofMillis(300))
                .set(GatewaySettings.STREAM_IDLE_TIMEOUT, Duration.ofMillis(300))
                .set(GatewaySettings.ANSWER_TIMEOUT, Duration.ofMillis(600));
    }

    @Test
    void eachClientHasItsOwnAnswerOrAnErrorAndNothingIsLeft() throws Exception {
        try (a;
                b;
                GatewayServer gateway = Gateways.started(config())) {
            try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE)) {
                for (int i = 0; i < REQUESTS; i++) {
                    final int number = i;
                    clients.execute(() -> ask(gateway, number));
                }
                clients.shutdown();
                assertTrue(clients.awaitTermination(2, TimeUnit.MINUTES), "clients hang");
            }
            peace = true;
            Eventually.holds(
                    () -> "engines run " + a.inFlight + "+" + b.inFlight,
                    () -> a.inFlight.get() + b.inFlight.get() == 0);
            Eventually.holds("no leases", () -> gateway.router().activeLeases() == 0);
            for (FrameEngine engine : List.of(a, b)) {
                engine.cut(); // with what it said of streams
            }
            Eventually.holds("both serve again", () -> servesAtBoth(gateway));
            assertDecisionsHaveEnded(gateway);
            assertEquals(List.of(), List.copyOf(violations));
        }
    }

    private static void assertDecisionsHaveEnded(GatewayServer gateway) throws Exception {
        final JsonNode decisions =
                Json.MAPPER.readTree(Gateways.get(gateway, "/debug/decisions?limit=65536").body());
        for (JsonNode decision : decisions.get("decisions")) {
            assertTrue(!decision.get("outcome").textValue().equals("running"), decision.toString());
        }
    }

    /** Whether some requests in a row are answered, by one worker and by the other. */
    private boolean servesAtBoth(GatewayServer gateway) {
        final Set<String> workers = new HashSet<>();
        try {
            for (int i = 0; i < 20; i++) {
                final HttpResponse<String> answer = post(gateway, REQUESTS + i, false);
                if (answer.statusCode() != 200) {
                    return false;
                }
                workers.add(GatewayHttpTest.header(answer, "x-kvasir-worker"));
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        return workers.size() == 2;
    }

    private static HttpResponse<String> post(GatewayServer gateway, int number, boolean stream)
            throws Exception {
        return Gateways.post(gateway, PATH, body(number, stream));
    }

    private static String body(int number, boolean stream) {
        return "{\"prompt\":[" + number + "],\"stream\":" + stream + "}";
    }

    private void ask(GatewayServer gateway, int number) {
        final Random own = new Random(seed + number * 31L);
        final boolean stream = own.nextBoolean();
        try {
            if (own.nextInt(4) == 0) {
                try (RawClient client = new RawClient(gateway.port())) {
                    client.post(PATH, body(number, stream));
                    Thread.sleep(own.nextInt(20));
                }
                return;
            }
            final HttpResponse<String> answer = post(gateway, number, stream);
            if (!isRight(answer, number, stream)) {
                violations.add(number + ": " + answer.statusCode() + " " + answer.body());
            }
        } catch (Exception | AssertionError e) {
            violations.add(number + ": " + e);
        }
    }

    private boolean isRight(HttpResponse<String> answer, int number, boolean stream) {
        final String body = answer.body();
        if (answer.statusCode() != 200) {
            return body.contains("\"error\"");
        }
        if (!stream) {
            return body.equals(whole(number));
        }
        String rest = body;
        int events = 0;
        while (rest.startsWith(event(number, events))) {
            rest = rest.substring(event(number, events).length());
            events++;
        }
        return (rest.equals("data: [DONE]\n\n") && events == events(number))
                || (rest.startsWith("data: {\"error\"") && events <= events(number));
    }

    private static String whole(int number) {
        return "{\"choices\":[{\"index\":0,\"text\":\""
                + ("w" + number).repeat(1 + number % 7 * 1_000)
                + "\"}],\"usage\":{\"prompt_tokens\":1}}";
    }

    private static int events(int number) {
        return 1 + number % 5;
    }

    private static String event(int number, int index) {
        return "data: {\"choices\":[{\"index\":0,\"text\":\""
                + ("n" + number + "-" + index).repeat(number % 11 == 0 ? 20_000 : 1)
                + "\"}]}\n\n";
    }

    /** Treats an attempt by its prompt and how many there were before, as far as that can be. */
    private void serve(FrameEngine.Call call) throws IOException, InterruptedException {
        final Matcher prompt = NUMBER.matcher(call.text());
        assertTrue(prompt.find(), call.text());
        final int number = Integer.parseInt(prompt.group(1));
        final boolean stream = call.text().contains("true");
        if (peace) {
            answer(call, number, stream, events(number), true);
            return;
        }
        final int before = attempts.merge(number, 1, Integer::sum);
        final Random own = new Random(seed ^ ((long) number << 8) ^ before);
        own.nextInt();
        Thread.sleep(own.nextInt(4));
        final FrameEngine engine = own.nextBoolean() ? a : b;
        switch (own.nextInt(14)) {
            case 0 -> call.reset(CODES[own.nextInt(CODES.length)]);
            case 1 -> {
                answer(call, number, stream, own.nextInt(events(number)), false);
                call.reset(CODES[own.nextInt(CODES.length)]);
            }
            case 2 -> {
                answer(call, number, stream, events(number), true);
                call.reset(CODES[own.nextInt(CODES.length)]);
            }
            case 3 -> engine.cut();
            case 4 -> {
                answer(call, number, stream, own.nextInt(events(number)), false);
                engine.cut();
            }
            case 5 -> {
                answer(call, number, stream, events(number), true);
                engine.cut();
            }
            case 6 -> {
                engine.goAway(call.stream.getId() + 2 * (own.nextInt(4) - 2));
                answer(call, number, stream, events(number), true);
            }
            case 7 -> {
                engine.goAwayLater();
                answer(call, number, stream, events(number), true);
            }
            case 8 -> {
                settings(call, STREAMS[own.nextInt(STREAMS.length)]);
                answer(call, number, stream, events(number), true);
            }
            case 9 -> call.awaitClientGone(60);
            case 10 -> {
                answer(call, number, stream, own.nextInt(events(number)), false);
                call.awaitClientGone(60);
            }
            case 11 -> call.json(503, "{\"error\":{}}");
            default -> answer(call, number, stream, events(number), true);
        }
    }

    private static void settings(FrameEngine.Call call, int streams) {
        call.session.settings(
                new SettingsFrame(Map.of(SettingsFrame.MAX_CONCURRENT_STREAMS, streams), false),
                Callback.NOOP);
    }

    private static void answer(
            FrameEngine.Call call, int number, boolean stream, int events, boolean ends)
            throws IOException, InterruptedException {
        if (!stream) {
            if (ends) {
                call.json(200, whole(number));
            }
            return;
        }
        call.beginEvents();
        for (int i = 0; i < events; i++) {
            call.event(event(number, i));
        }
        if (ends) {
            call.endEvents();
        }
    }
}
