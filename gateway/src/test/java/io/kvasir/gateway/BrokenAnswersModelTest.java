package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.Json;
import io.kvasir.gateway.testing.CountedRelease;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.router.disagg.FallbackPolicy;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Answers that workers break off at any byte, in any framing, cut anywhere by the network: a client
 * has all of the answer once, whole events of it and one error event, or an error, and no booking
 * is left.
 */
class BrokenAnswersModelTest {
    private static final int REQUESTS = Trials.of(80, 1_000);
    private static final int AT_ONCE = 8;
    private static final int RETRIES = 2;
    private static final Pattern NUMBER = Pattern.compile("\"prompt\":\\[(\\d+)]");
    private static final String LAST_CHUNK = "0\r\n\r\n";
    private static final Pattern BLOCKS = Pattern.compile("\"remote_request_id\":\"([^\"]+)\"");
    private static final int[] STATUSES = {400, 422, 429, 500, 501, 503};

    /** How a worker treats a request. */
    private enum Fate {
        WHOLE,
        RESET,
        CLOSED,
        STATUS,
        ERROR_EVENT,
        ERROR_EVENT_THEN_RESET
    }

    /** What a request's answer is, whoever gives it. */
    private static final class Asked {
        final int number;
        final boolean stream;
        final boolean usage;
        final int tokens;
        final String end; // of lines
        final List<Fate> fates = new ArrayList<>(); // of its attempts; guarded by itself
        String decodedFrom; // blocks of the last attempt; guarded by fates
        boolean prefilledLast; // the last attempt is a prefill's; guarded by fates

        Asked(int number, Random random) {
            this.number = number;
            this.stream = random.nextInt(3) > 0;
            this.usage = random.nextBoolean();
            this.tokens = 1 + random.nextInt(6);
            this.end = random.nextBoolean() ? "\n" : "\r\n";
        }

        String body() {
            return "{\"model\":\"m\",\"prompt\":["
                    + number
                    + "],\"stream\":"
                    + stream
                    + (stream && usage ? ",\"stream_options\":{\"include_usage\":true}}" : "}");
        }

        String decodedFrom() {
            synchronized (fates) {
                return decodedFrom;
            }
        }

        List<String> events(boolean withUsage) {
            final List<String> events = new ArrayList<>();
            for (int i = 0; i < tokens; i++) {
                if ((number + i) % 4 == 0) {
                    events.add(": alive" + end + end);
                }
                events.add(
                        event(
                                "{\"choices\":[{\"index\":0,\"text\":\""
                                        + number
                                        + "ä"
                                        + i
                                        + " \",\"finish_reason\":null}]}"));
            }
            if (withUsage) {
                events.add(event("{\"choices\":[]," + usageMember() + "}"));
            }
            events.add(event("[DONE]"));
            return events;
        }

        String event(String data) {
            return "data: " + data + end + end;
        }

        String whole() {
            return "{\"choices\":[{\"index\":0,\"text\":\""
                    + number
                    + "\"}],"
                    + usageMember()
                    + "}";
        }

        private String usageMember() {
            return "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":" + tokens + "}";
        }
    }

    private final Map<Integer, Asked> asked = new ConcurrentHashMap<>();
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();
    private final AtomicInteger calls = new AtomicInteger();
    private final AtomicInteger prefills = new AtomicInteger();
    private final Set<String> decoded = ConcurrentHashMap.newKeySet(); // names of blocks
    private final Set<String> fetched = ConcurrentHashMap.newKeySet(); // what clients have of them
    private final CountedRelease release = new CountedRelease();
    private final Map<String, Integer> outcomes = new ConcurrentHashMap<>();
    private long seed;

    @Tag("trials")
    @Test
    void aClientHasAnAnswerOnceOrAnError() throws Exception {
        seed = Seeds.next("BrokenAnswersModelTest");
        try (FakeEngine a = new FakeEngine(this::serve);
                FakeEngine b = new FakeEngine(this::serve);
                FakeEngine c = new FakeEngine(this::serve)) {
            askAll(Gateways.config(a.worker("a"), b.worker("b"), c.worker("c")));
        }
    }

    @Tag("trials")
    @Test
    void blocksOfASplitRequestAreFetchedOrFreedOnce() throws Exception {
        seed = Seeds.next("BrokenAnswersModelTest of split requests");
        final FallbackPolicy[] policies = FallbackPolicy.values();
        try (FakeEngine a = new FakeEngine(this::serve);
                FakeEngine b = new FakeEngine(this::serve);
                FakeEngine c = new FakeEngine(this::serve);
                FakeEngine d = new FakeEngine(this::serve)) {
            askAll(
                    Gateways.config(
                                    worker(a, "a,role=prefill"),
                                    worker(b, "b,role=prefill"),
                                    worker(c, "c,role=decode"),
                                    worker(d, "d,role=decode"))
                            .set(
                                    GatewaySettings.SPLIT_FALLBACK,
                                    policies[Math.floorMod((int) seed, policies.length)]));
        }
        assertTrue(prefills.get() > 0, "no request was split");
        release.ends()
                .forEach(
                        (blocks, how) ->
                                assertEquals(
                                        List.of(
                                                fetched.contains(blocks)
                                                        ? CountedRelease.End.FETCHED
                                                        : CountedRelease.End.FREED),
                                        List.copyOf(how),
                                        blocks));
    }

    private static WorkerConfig worker(FakeEngine engine, String name) {
        return WorkerConfig.parse(engine.url() + ",name=" + name);
    }

    private void askAll(GatewayConfig.Builder config) throws Exception {
        config.set(GatewaySettings.RETRIES, RETRIES)
                .set(GatewaySettings.RETRY_BACKOFF, Duration.ofMillis(1))
                .set(GatewaySettings.BREAKER_FAULTS, 1000);
        try (GatewayServer gateway = GatewayServer.startWith(config.build(), release)) {
            Gateways.awaitContact(gateway);
            try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE)) {
                for (int i = 0; i < REQUESTS; i++) {
                    final Asked one = new Asked(i, new Random(seed + i));
                    asked.put(i, one);
                    clients.execute(() -> ask(gateway, one));
                }
                clients.shutdown();
                assertTrue(clients.awaitTermination(1, TimeUnit.MINUTES), "requests hang");
            }
            System.out.println(outcomes);
            assertEquals(List.of(), List.copyOf(violations));
            Eventually.holds("no booking is left", () -> gateway.router().activeLeases() == 0);
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(0, page.sum("kvasir_prefill_pool_active_requests"));
            assertEquals(calls.get(), page.sum("kvasir_upstream_attempts_total"));
            assertEquals(REQUESTS, page.sum("kvasir_requests_total"));
            Eventually.holds( // the last write of an answer may end after its booking
                    "no byte of an answer is left",
                    () -> MetricsPage.of(gateway).sum("kvasir_answer_bytes_in_flight") == 0);
        }
    }

    private void serve(FakeEngine.Call call) throws IOException, InterruptedException {
        calls.incrementAndGet();
        final Matcher number = NUMBER.matcher(call.text());
        assertTrue(number.find(), call.text());
        final Asked one = asked.get(Integer.parseInt(number.group(1)));
        final boolean prefill = call.text().contains("\"do_remote_decode\":true");
        final Matcher blocks = BLOCKS.matcher(call.text());
        final String handedOver = !prefill && blocks.find() ? blocks.group(1) : null;
        if (handedOver != null && !decoded.add(handedOver)) {
            violations.add(one.body() + ": blocks " + handedOver + " are fetched again");
        }
        final Random random;
        final Fate fate;
        synchronized (one.fates) {
            random = new Random(seed ^ ((long) one.number << 8) ^ one.fates.size());
            random.nextInt();
            fate =
                    random.nextInt(3) == 0
                            ? Fate.WHOLE
                            : Fate.values()[random.nextInt(one.stream && !prefill ? 6 : 4)];
            one.fates.add(fate);
            one.decodedFrom = handedOver;
            one.prefilledLast = prefill;
        }
        final byte[] answer =
                prefill && fate != Fate.STATUS
                        ? json(prefilled(one), random)
                        : answer(call, one, fate, random);
        final int length =
                switch (fate) {
                    case RESET, CLOSED -> random.nextInt(answer.length);
                    case ERROR_EVENT_THEN_RESET -> answer.length - LAST_CHUNK.length();
                    default -> answer.length;
                };
        for (int from = 0; from < length; ) {
            final int to =
                    random.nextInt(4) == 0
                            ? length
                            : Math.min(length, from + 1 + random.nextInt(100));
            call.raw(answer, from, to - from);
            from = to;
            if (random.nextInt(3) == 0) {
                Thread.sleep(1);
            }
        }
        if (fate == Fate.RESET || fate == Fate.ERROR_EVENT_THEN_RESET) {
            if (random.nextBoolean()) {
                Thread.sleep(2);
            }
            call.cut();
        }
    }

    /** All bytes of the answer, the head's included. */
    private static byte[] answer(FakeEngine.Call call, Asked one, Fate fate, Random random) {
        if (fate == Fate.STATUS) {
            final int status = STATUSES[random.nextInt(STATUSES.length)];
            final String error =
                    "{\"error\":{\"code\":" + status + ",\"from\":" + one.number + "}}";
            return bytes(
                    "HTTP/1.1 "
                            + status
                            + " X\r\nContent-Type: application/json\r\nContent-Length: "
                            + error.length()
                            + "\r\nConnection: close\r\n\r\n"
                            + error);
        }
        if (!one.stream) {
            return json(one.whole(), random);
        }
        String events = String.join("", one.events(call.text().contains("\"include_usage\":true")));
        if (fate == Fate.ERROR_EVENT || fate == Fate.ERROR_EVENT_THEN_RESET) {
            final List<String> all = one.events(false);
            events =
                    String.join("", all.subList(0, random.nextInt(all.size())))
                            + one.event(
                                    "{\"error\":{\"code\":"
                                            + STATUSES[random.nextInt(STATUSES.length)]
                                            + ",\"from\":"
                                            + one.number
                                            + "}}");
            if (fate == Fate.ERROR_EVENT && random.nextBoolean()) {
                events += one.event("[DONE]");
            }
        }
        final String head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
        return switch (fate == Fate.ERROR_EVENT_THEN_RESET ? 2 : random.nextInt(3)) {
            case 0 ->
                    bytes(
                            head
                                    + "Content-Length: "
                                    + bytes(events).length
                                    + "\r\nConnection: close\r\n\r\n"
                                    + events);
            case 1 -> bytes(head + "Connection: close\r\n\r\n" + events);
            default ->
                    bytes(
                            head
                                    + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                                    + chunks(events, random));
        };
    }

    /** What a prefill worker answers: its blocks have a name that no other prefill's have. */
    private String prefilled(Asked one) {
        return CountedRelease.prefilled("r" + one.number + "-" + prefills.incrementAndGet());
    }

    private static byte[] json(String text, Random random) {
        final String head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        return random.nextBoolean()
                ? bytes(
                        head
                                + "Content-Length: "
                                + text.length()
                                + "\r\nConnection: close\r\n\r\n"
                                + text)
                : bytes(
                        head
                                + "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
                                + chunks(text, random));
    }

    private static String chunks(String text, Random random) {
        final StringBuilder chunks = new StringBuilder();
        for (int from = 0; from < text.length(); ) {
            final int to = Math.min(text.length(), from + 1 + random.nextInt(150));
            final String chunk = text.substring(from, to);
            chunks.append(Integer.toHexString(bytes(chunk).length))
                    .append("\r\n")
                    .append(chunk)
                    .append("\r\n");
            from = to;
        }
        return chunks.append(LAST_CHUNK).toString();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private void ask(GatewayServer gateway, Asked one) {
        try {
            final HttpResponse<String> answer =
                    Gateways.post(gateway, "/v1/completions", one.body());
            final String wrong =
                    answer.statusCode() == 200
                            ? one.stream ? stream(one, answer.body()) : whole(one, answer.body())
                            : error(one, answer);
            if (wrong != null) {
                violations.add(one.body() + " " + one.fates + ": " + wrong);
            } else if (answer.statusCode() == 200 && one.decodedFrom() != null) {
                fetched.add(one.decodedFrom());
            }
        } catch (Exception e) {
            violations.add(one.body() + " " + one.fates + ": " + e);
        }
    }

    private String whole(Asked one, String body) {
        outcomes.merge("whole", 1, Integer::sum);
        return body.equals(one.whole()) ? null : "another answer: " + body;
    }

    private String stream(Asked one, String body) {
        final List<String> expected = one.events(one.usage);
        int at = 0;
        int events = 0;
        while (events < expected.size() && body.startsWith(expected.get(events), at)) {
            at += expected.get(events).length();
            events++;
        }
        final String rest = body.substring(at);
        if (events == expected.size()) {
            outcomes.merge("stream", 1, Integer::sum);
            return rest.isEmpty() ? null : "more than the answer: " + rest;
        }
        if (last(one) == Fate.WHOLE) {
            return "not all of it: " + body;
        }
        final String error = rest.stripTrailing();
        outcomes.merge("error event", 1, Integer::sum);
        if (!error.startsWith("data: {\"error\"")) {
            return "no error event after " + events + " events: " + rest;
        }
        final String data = error.substring("data: ".length());
        final int end = data.indexOf('\n');
        final String after = end < 0 ? "" : data.substring(end).strip();
        return after.isEmpty() || after.equals("data: [DONE]") ? null : "after the error: " + rest;
    }

    private String error(Asked one, HttpResponse<String> answer) throws IOException {
        outcomes.merge("status " + answer.statusCode(), 1, Integer::sum);
        if (last(one) == Fate.WHOLE) {
            return "an error instead of the answer: " + answer.statusCode() + answer.body();
        }
        return Json.MAPPER.readTree(answer.body()).path("error").isObject()
                        && Set.of(400, 422, 429, 500, 501, 502, 503).contains(answer.statusCode())
                ? null
                : "no error: " + answer.statusCode() + " " + answer.body();
    }

    /** Of the last attempt at an answer. */
    private static Fate last(Asked one) {
        synchronized (one.fates) {
            return one.prefilledLast ? Fate.STATUS : one.fates.getLast();
        }
    }
}
