package io.kvasir.gateway.testing;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.LogFormat;
import io.kvasir.gateway.openai.Json;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.function.Executable;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Clients that leave at any byte, in any way, several requests on a connection, and what must hold
 * of a gateway once all of them have left.
 */
public final class LeavingClients {
    private static final String EVENT =
            "data: {\"choices\":[{\"index\":0,\"text\":\"token \",\"finish_reason\":null}]}\n\n";
    private static final String ANSWER =
            "{\"choices\":[{\"index\":0,\"text\":\"t\"}],"
                    + "\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}";
    private static final int VISITS = 40;
    private static final int AT_ONCE = 16;
    private static final int MOST_REQUESTS = 4;
    private static final Pattern PROMPT = Pattern.compile("\"prompt\":\\[(\\d+)");
    private static final Pattern STATUS = Pattern.compile("HTTP/1\\.1 ([2-5]\\d\\d) ");

    /** What must be nothing once all clients have left. */
    private static final List<String> GAUGES =
            List.of(
                    "kvasir_requests_preparing",
                    "kvasir_prompts_waiting",
                    "kvasir_requests_unread",
                    "kvasir_body_bytes_in_flight",
                    "kvasir_answer_bytes_in_flight",
                    "kvasir_requests_in_flight",
                    "kvasir_streams_in_flight",
                    "kvasir_open_connections",
                    "kvasir_queue_requests",
                    "kvasir_queue_tokens",
                    "kvasir_queue_following",
                    "kvasir_worker_active_requests",
                    "kvasir_worker_active_blocks",
                    "kvasir_worker_prefill_tokens",
                    "kvasir_prefill_pool_active_requests",
                    "dynamo_frontend_inflight_requests");

    private final long seed;
    private final Path log;
    private final Queue<String> violations = new ConcurrentLinkedQueue<>();

    /** By id of the request: the status that its client has got whole. */
    private final Map<String, Integer> answered = new ConcurrentHashMap<>();

    private final Map<String, Integer> attempts = new ConcurrentHashMap<>(); // by prompt

    private volatile boolean ends; // the gateway, from now on: clients may be refused

    /**
     * @param folder for the gateway's access log
     */
    public LeavingClients(long seed, Path folder) {
        this.seed = seed;
        this.log = folder.resolve("access.log");
    }

    /** Something that must not have been. */
    public void violated(String what) {
        violations.add(what);
    }

    /** That nothing was. */
    public void assertNoViolation() {
        assertEquals(List.of(), List.copyOf(violations), "-Dseed=" + seed);
    }

    /** Short limits, retries and, by the seed, a queue. */
    public GatewayConfig.Builder configured(GatewayConfig.Builder config) {
        final Random random = new Random(seed);
        config.set(GatewaySettings.RETRIES, 2)
                .set(GatewaySettings.RETRY_BACKOFF, Duration.ofMillis(random.nextInt(5)))
                .set(GatewaySettings.BREAKER_FAULTS, 1_000)
                .set(GatewaySettings.DECISION_LOG_SIZE, 1 << 16)
                .set(GatewaySettings.FIRST_BYTE_TIMEOUT, Duration.ofMillis(150))
                .set(GatewaySettings.STREAM_IDLE_TIMEOUT, Duration.ofMillis(150))
                .set(GatewaySettings.BODY_TIMEOUT, Duration.ofMillis(150))
                .set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofMillis(500))
                .set(GatewaySettings.ACCESS_LOG, log.toString())
                .set(GatewaySettings.ACCESS_LOG_FORMAT, LogFormat.JSON);
        if (random.nextInt(3) > 0) {
            config.set(RouterSettings.QUEUE_PREFILL_TOKENS, (long) random.nextInt(60))
                    .set(RouterSettings.QUEUE_MAX_WAIT, Duration.ofMillis(100));
        }
        return config;
    }

    /** Has a gateway take its time to end, or none. */
    public static GatewayConfig.Builder ending(GatewayConfig.Builder config, Random random) {
        return config.set(GatewaySettings.DRAIN_TIMEOUT, Duration.ofMillis(random.nextInt(200)))
                .set(GatewaySettings.LAME_DUCK, Duration.ofMillis(random.nextInt(100)));
    }

    /** Has all of them come and leave. */
    public void comeAndLeave(GatewayServer gateway) throws InterruptedException {
        comeAndLeave(gateway, () -> {});
    }

    /** The same with a gateway that ends meanwhile. */
    public void comeWhileItEnds(GatewayServer gateway, Random random) throws InterruptedException {
        final List<Executable> ways = List.of(gateway::cut, gateway::close, gateway::drain);
        comeAndLeave(
                gateway,
                () -> {
                    Thread.sleep(random.nextInt(400));
                    ends = true;
                    assertDoesNotThrow(ways.get(random.nextInt(ways.size())));
                });
    }

    /** The same while something is done. */
    public void comeAndLeave(GatewayServer gateway, Meanwhile meanwhile)
            throws InterruptedException {
        try (ExecutorService clients = Executors.newFixedThreadPool(AT_ONCE)) {
            for (int i = 0; i < VISITS; i++) {
                final int number = i;
                clients.execute(() -> visit(gateway.port(), number));
            }
            meanwhile.act();
            clients.shutdown();
            assertTrue(clients.awaitTermination(2, TimeUnit.MINUTES), "clients hang");
        }
    }

    /** What may wait. */
    public interface Meanwhile {
        void act() throws InterruptedException;
    }

    /** The prompt of what an engine gets, by which a request is known. */
    private static String prompt(FakeEngine.Call call) {
        final Matcher prompt = PROMPT.matcher(call.text());
        assertTrue(prompt.find(), call.text());
        return prompt.group(1);
    }

    /** What a worker does at random with this request, by how often it was asked before. */
    public Random random(FakeEngine.Call call) {
        final String prompt = prompt(call);
        final int before = attempts.merge(prompt, 1, Integer::sum);
        final Random random = new Random(seed ^ (Long.parseLong(prompt) << 8) ^ before);
        random.nextInt();
        return random;
    }

    /** Answers, well or not. */
    public static void treat(FakeEngine.Call call, Random random)
            throws IOException, InterruptedException {
        switch (random.nextInt(12)) {
            case 0 -> call.cut();
            case 1 -> call.json(503, "{}");
            case 2 -> call.json(400, "{\"error\":{}}");
            case 3 -> call.awaitClientGone(60);
            case 4 -> {
                if (isStream(call)) {
                    call.beginEvents();
                    call.chunk(EVENT);
                } else {
                    call.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{");
                }
                call.awaitClientGone(60);
            }
            case 5 -> {
                if (isStream(call)) {
                    call.beginEvents();
                    call.chunk(EVENT.repeat(random.nextInt(3_000)));
                    call.cut();
                } else {
                    call.json(200, ANSWER + " ".repeat(random.nextInt(300_000)));
                }
            }
            default -> answer(call, random);
        }
    }

    /** Answers well, a stream in parts. */
    private static void answer(FakeEngine.Call call, Random random)
            throws IOException, InterruptedException {
        if (!isStream(call)) {
            call.json(200, ANSWER);
            return;
        }
        call.beginEvents();
        for (int i = random.nextInt(6); i > 0; i--) {
            call.chunk(EVENT.repeat(1 + random.nextInt(random.nextInt(4) == 0 ? 500 : 2)));
            Thread.sleep(random.nextInt(3));
        }
        call.chunk("data: [DONE]\n\n");
        call.endChunks();
    }

    private static boolean isStream(FakeEngine.Call call) {
        return call.text().contains("\"stream\":true");
    }

    /** That none was logged that was not asked, and none twice. */
    public void assertLoggedOnce() throws IOException {
        assertTrue(logged().size() <= VISITS * MOST_REQUESTS, "requests that were not asked");
    }

    /** By id of the request; one that was answered has the status that its client has got. */
    private Map<String, Integer> logged() throws IOException {
        final Map<String, Integer> logged = new TreeMap<>();
        for (String line : lines()) {
            final JsonNode entry = Json.MAPPER.readTree(line);
            if (logged.put(entry.get("request_id").textValue(), entry.get("status").intValue())
                    != null) {
                violations.add("twice: " + line);
            }
        }
        answered.forEach(
                (id, status) -> {
                    if (!status.equals(logged.get(id))) {
                        violations.add(id + " got " + status + ", logged " + logged.get(id));
                    }
                });
        return logged;
    }

    /** Once all clients have left. */
    public void assertNothingIsLeft(GatewayServer gateway, List<FakeEngine> engines) {
        Eventually.holds(() -> "left: " + left(gateway), () -> left(gateway).isEmpty());
        Eventually.holds("no leases", () -> gateway.router().activeLeases() == 0);
        assertAtRest(engines);
    }

    /** That no engine is at work. */
    public void assertAtRest(List<FakeEngine> engines) {
        Eventually.holds(
                () -> "engines run " + engines.stream().map(each -> each.inFlight).toList(),
                () -> engines.stream().allMatch(each -> each.inFlight.get() == 0));
    }

    private static Map<String, Double> left(GatewayServer gateway) {
        final MetricsPage page = MetricsPage.of(gateway);
        final Map<String, Double> left = new TreeMap<>();
        for (String gauge : GAUGES) {
            if (page.sum(gauge) != 0) {
                left.put(gauge, page.sum(gauge));
            }
        }
        return left;
    }

    /** In the access log, the metrics and the decisions. */
    public void assertEachIsCountedOnce(GatewayServer gateway) throws Exception {
        final MetricsPage page = MetricsPage.of(gateway);
        final int ended = (int) page.sum("kvasir_requests_total");
        Eventually.holds(
                () -> ended + " lines, not " + lines().size(), () -> lines().size() >= ended);
        final Map<String, Integer> logged = logged();
        final Map<Integer, Integer> byStatus = new TreeMap<>();
        logged.values().forEach(status -> byStatus.merge(status, 1, Integer::sum));
        assertEquals(ended, lines().size());
        byStatus.forEach(
                (status, count) ->
                        assertEquals(
                                count,
                                (int) page.sum("kvasir_requests_total", "status", "" + status),
                                "status " + status));
        assertEquals(
                page.sum("dynamo_component_router_requests_started_total"),
                page.sum("dynamo_frontend_requests_total"));
        final JsonNode decisions =
                Json.MAPPER.readTree(Gateways.get(gateway, "/debug/decisions?limit=65536").body());
        for (JsonNode decision : decisions.get("decisions")) {
            if (decision.get("outcome").textValue().equals("running")) {
                violations.add("runs on: " + decision);
            }
        }
    }

    /** Once the gateway has ended: that each request is one trace, and nothing else is traced. */
    public void assertTraced(FakeCollector collector) throws IOException {
        violations.addAll(Traces.wrong(collector.spans, logged()));
    }

    private List<String> lines() {
        try {
            return Files.readAllLines(log);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void visit(int port, int number) {
        final Random random = new Random(seed + number * 31L);
        try {
            if (random.nextInt(3) == 0) {
                visitWithStreams(port, number, random);
            } else {
                visitWithBytes(port, number, random);
            }
        } catch (IOException e) {
            // the gateway has had enough of it
        } catch (Exception | AssertionError e) {
            if (!ends) { // else it may be refused
                violations.add("visit " + number + ": " + e);
            }
        }
    }

    private static String id(int visit, int request) {
        return "v" + visit + "-" + request;
    }

    private static String body(int visit, int request, Random random) {
        return "{\"model\":\"m\",\"prompt\":["
                + (visit * MOST_REQUESTS + request)
                + ",7".repeat(random.nextInt(60))
                + "],\"stream\":"
                + random.nextBoolean()
                + "}"
                + " ".repeat(random.nextInt(10) == 0 ? random.nextInt(40_000) : 0);
    }

    private void visitWithStreams(int port, int number, Random random) throws Exception {
        try (FrameClient client = new FrameClient(port, 1 << random.nextInt(10, 20))) {
            final List<FrameClient.Exchange> all = new ArrayList<>();
            for (int i = 1 + random.nextInt(MOST_REQUESTS); i > 0; i--) {
                final int request = all.size();
                final String body = body(number, request, random);
                final FrameClient.Exchange one =
                        client.begin(
                                "POST",
                                "/v1/completions",
                                false,
                                "x-request-id: " + id(number, request));
                all.add(one);
                final int part = random.nextInt(4) == 0 ? random.nextInt(body.length()) : -1;
                if (part >= 0) {
                    one.send(body.substring(0, part), false);
                    Thread.sleep(random.nextInt(3));
                    if (random.nextInt(3) == 0) {
                        continue;
                    }
                    one.send(body.substring(part), true);
                } else {
                    one.send(body, true);
                }
                if (random.nextInt(3) == 0) {
                    Thread.sleep(random.nextInt(8));
                    one.reset();
                }
            }
            Thread.sleep(random.nextInt(3) == 0 ? random.nextInt(10) : 0);
            switch (random.nextInt(3)) {
                case 0 -> client.cut();
                case 1 -> {}
                default -> {
                    for (int i = 0; i < all.size(); i++) {
                        awaitEnd(all.get(i), id(number, i));
                    }
                }
            }
        }
    }

    private void awaitEnd(FrameClient.Exchange one, String id) throws InterruptedException {
        final long beganNs = System.nanoTime();
        while (!one.hasEnded()
                && !one.isRefused()
                && System.nanoTime() - beganNs < TimeUnit.MILLISECONDS.toNanos(400)) {
            Thread.sleep(1);
        }
        if (one.hasEnded() && !one.hasFailed()) {
            final int status = one.status();
            if (!one.whole().contains("data: {\"error\"")) {
                answered.put(id, status);
            }
        }
    }

    private void visitWithBytes(int port, int number, Random random)
            throws IOException, InterruptedException {
        final StringBuilder text = new StringBuilder();
        final int requests = 1 + (random.nextBoolean() ? random.nextInt(MOST_REQUESTS) : 0);
        for (int i = 0; i < requests; i++) {
            final String body = body(number, i, random);
            text.append("POST /v1/completions HTTP/1.1\r\nHost: g\r\nx-request-id: ")
                    .append(id(number, i))
                    .append("\r\nContent-Type: application/json\r\n");
            if (random.nextInt(4) == 0) {
                text.append("Transfer-Encoding: chunked\r\n\r\n")
                        .append(Integer.toHexString(body.length()))
                        .append("\r\n")
                        .append(body)
                        .append("\r\n0\r\n\r\n");
            } else {
                text.append("Content-Length: ")
                        .append(body.length())
                        .append("\r\n\r\n")
                        .append(body);
            }
        }
        final byte[] bytes = text.toString().getBytes(StandardCharsets.UTF_8);
        final int length = random.nextInt(3) == 0 ? random.nextInt(bytes.length) : bytes.length;
        try (Socket socket = new Socket()) {
            if (random.nextInt(3) == 0) {
                socket.setReceiveBufferSize(4_096);
            }
            socket.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(400);
            send(socket.getOutputStream(), bytes, length, random);
            leave(socket, number, length == bytes.length ? requests : 0, random);
        }
    }

    private static void send(OutputStream out, byte[] bytes, int length, Random random)
            throws IOException, InterruptedException {
        for (int from = 0; from < length; ) {
            final int to =
                    random.nextBoolean()
                            ? length
                            : Math.min(length, from + 1 + random.nextInt(400));
            out.write(bytes, from, to - from);
            from = to;
            Thread.sleep(random.nextInt(10) == 0 ? random.nextInt(3) : 0);
        }
    }

    private void leave(Socket socket, int number, int sent, Random random)
            throws IOException, InterruptedException {
        Thread.sleep(random.nextInt(12));
        switch (random.nextInt(8)) {
            case 0 -> {}
            case 1 -> socket.setSoLinger(true, 0);
            case 2 -> {
                read(socket.getInputStream(), random.nextInt(2_000));
                socket.setSoLinger(random.nextBoolean(), 0);
            }
            case 3 -> Thread.sleep(random.nextInt(700)); // reads nothing
            case 4 -> {
                socket.shutdownOutput();
                note(read(socket.getInputStream(), Integer.MAX_VALUE), number, sent);
            }
            case 5 -> {
                socket.shutdownOutput();
                Thread.sleep(random.nextInt(20));
            }
            default -> note(read(socket.getInputStream(), Integer.MAX_VALUE), number, sent);
        }
    }

    /** What comes until so many bytes, the end, a reset or a silence. */
    private static String read(InputStream in, int most) throws IOException {
        final StringBuilder read = new StringBuilder();
        final byte[] buffer = new byte[8_192];
        try {
            while (read.length() < most) {
                final int count = in.read(buffer, 0, Math.min(most - read.length(), buffer.length));
                if (count < 0) {
                    break;
                }
                read.append(new String(buffer, 0, count, StandardCharsets.UTF_8));
            }
        } catch (IOException e) {
            return read.toString();
        }
        return read.toString();
    }

    /** Of a connection with one request, which was sent whole, the answer is known to be its. */
    private void note(String answer, int number, int sent) {
        final Matcher status = STATUS.matcher(answer);
        final boolean whole = answer.endsWith("\r\n0\r\n\r\n") || answer.endsWith("}");
        if (sent == 1 && whole && status.find() && !answer.contains("data: {\"error\"")) {
            answered.put(id(number, 0), Integer.parseInt(status.group(1)));
        }
    }
}
