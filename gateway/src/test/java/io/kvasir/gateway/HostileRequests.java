package io.kvasir.gateway;

import io.kvasir.gateway.testing.FaultyEngine;

import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.random.RandomGenerator;

/** Requests that no honest client sends, or bytes that are none. */
final class HostileRequests {
    private static final List<String> PATHS =
            List.of("/v1/chat/completions", "/v1/completions", "/tokenize", "/v1/models", "/ready");

    /** In place of what stands between the request line and the empty line of a request. */
    private static final List<String> HEADERS =
            List.of(
                    "Content-Length: 5\r\nTransfer-Encoding: chunked",
                    "Content-Length: 5\r\nContent-Length: 6",
                    "Content-Length: -5",
                    "Content-Length: 99999999999999999999",
                    "Content-Length: 30000000",
                    "Content-Length : 5",
                    "Transfer-Encoding: chunked, identity",
                    "Transfer-Encoding: \u000bchunked",
                    "Transfer-Encoding: gzip",
                    "Content-Encoding: gzip\r\nContent-Length: 5",
                    "Expect: 100-continue\r\nContent-Length: 5",
                    "Expect: the-unexpected\r\nContent-Length: 5",
                    "Upgrade: h2c\r\nHTTP2-Settings: AAMA\r\nConnection: Upgrade, HTTP2-Settings",
                    "Upgrade: websocket\r\nConnection: Upgrade",
                    "Host: b\r\nHost: c",
                    "X: a\r\n folded",
                    "X: \0",
                    "X: a\rb",
                    "no colon",
                    ": no name",
                    "X-Kvasir-Worker: w1",
                    "X-Kvasir-Mode: \u00ff",
                    "X-Data-Parallel-Rank: 99",
                    "Authorization: Bearer wrong",
                    "X-Request-Id: a\u0085b",
                    "Connection: close, x-request-id, content-length",
                    "Accept-Encoding: gzip;q=0",
                    "Range: bytes=0-");

    private static final List<String> TEMPLATES =
            List.of(
                    "{{ messages[0].content }}",
                    "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor"
                            + " %}",
                    "{{ 'aaaaaaaaaa' * 2000000000 }}",
                    "{% set n = namespace(s='x') %}{% for i in range(60) %}{% set n.s = n.s ~ n.s"
                            + " %}{% endfor %}{{ n.s }}",
                    "{{ range(99999)|list }}",
                    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
                    "{{ raise_exception(messages[0].content) }}",
                    "{{ messages|tojson * 1000 }}",
                    "{{ ('x' * 100000).replace('x', 'y' * 100000) }}",
                    "{% if",
                    "{{ 9 ** 9 ** 9 }}",
                    "{{ '%1000000000d' % 1 }}",
                    "{{ undefined.attribute.of.nothing }}",
                    "{% include '/etc/passwd' %}");

    private static final List<String> VALUES =
            List.of(
                    "null",
                    "-1",
                    "1e400000",
                    "9".repeat(900),
                    "9".repeat(5_000),
                    "NaN",
                    "true",
                    "\"\\ud800\"",
                    "\"\\u0000\"",
                    "\"\u00ff\u00fe\"",
                    "{}",
                    "[]",
                    "[[]]",
                    "[1,2,2147483648]",
                    "[-1]",
                    "[\"a\",\"b\"]",
                    "[[1],[2,3]]",
                    "[1,\"a\"]",
                    "[{\"role\":\"wizard\",\"content\":7}]",
                    "[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\"}]}]",
                    "\"@ok\"");

    private static final List<String> FIELDS =
            List.of(
                    "model",
                    "prompt",
                    "messages",
                    "stream",
                    "stream_options",
                    "tools",
                    "n",
                    "best_of",
                    "max_tokens",
                    "cache_salt",
                    "chat_template_kwargs",
                    "add_generation_prompt",
                    "continue_final_message",
                    "prompt_embeds",
                    "user");

    private final RandomGenerator random;

    HostileRequests(RandomGenerator random) {
        this.random = random;
    }

    <T> T oneOf(List<T> all) {
        return all.get(random.nextInt(all.size()));
    }

    /** A well-formed request. */
    static byte[] post(String path, byte[] body) {
        final byte[] head =
                ("POST "
                                + path
                                + " HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/json\r\n"
                                + "Content-Length: "
                                + body.length
                                + "\r\n\r\n")
                        .getBytes(StandardCharsets.ISO_8859_1);
        final byte[] all = new byte[head.length + body.length];
        System.arraycopy(head, 0, all, 0, head.length);
        System.arraycopy(body, 0, all, head.length, body.length);
        return all;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** A right request whose prompt asks the engine for a fault. */
    byte[] faulty() {
        final String fault = oneOf(FaultyEngine.faults());
        return post(
                "/v1/completions",
                bytes(
                        "{\"model\":\"m\",\"stream\":"
                                + (random.nextInt(3) > 0)
                                + ",\"prompt\":\"attack @"
                                + fault
                                + " "
                                + random.nextInt(1000)
                                + "\"}"));
    }

    byte[] withHostileHead() {
        return switch (random.nextInt(6)) {
            case 0 -> bytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
            case 1 -> noise(1 + random.nextInt(300));
            case 2 -> mutated(faulty());
            case 3 ->
                    bytes(
                            oneOf(
                                            List.of(
                                                    "GET", "OPTIONS", "TRACE", "CONNECT", "HEAD",
                                                    "\u00ff", ""))
                                    + " "
                                    + oneOf(
                                            List.of(
                                                    "*",
                                                    "http://a/v1/models",
                                                    "/%zz",
                                                    "/admin/../v1/completions",
                                                    "/v1/completions;/..",
                                                    "/" + "a".repeat(20_000),
                                                    "/v1//completions"))
                                    + oneOf(List.of(" HTTP/1.1", " HTTP/1.0", " HTTP/3.7", ""))
                                    + "\r\nHost: x\r\n\r\n");
            case 4 ->
                    bytes(
                            "POST "
                                    + oneOf(PATHS)
                                    + " HTTP/1.1\r\nHost: x\r\n"
                                    + ("X-" + random.nextInt(9) + ": " + "a".repeat(500) + "\r\n")
                                            .repeat(random.nextInt(40))
                                    + "Content-Length: 2\r\n\r\n{}");
            default ->
                    bytes(
                            "POST "
                                    + oneOf(PATHS)
                                    + " HTTP/1.1\r\nHost: x\r\n"
                                    + oneOf(HEADERS)
                                    + "\r\n\r\n"
                                    + oneOf(
                                            List.of(
                                                    "",
                                                    "hello",
                                                    "5\r\nhello\r\n0\r\n\r\n",
                                                    "5;x=y\r\nhello\r\n0\r\nTrailer: 1\r\n\r\n",
                                                    "fffffffff\r\nhello",
                                                    "-1\r\nhello\r\n0\r\n\r\n")));
        };
    }

    private byte[] noise(int length) {
        final byte[] noise = new byte[length];
        random.nextBytes(noise);
        return noise;
    }

    private byte[] mutated(byte[] request) {
        for (int i = 1 + random.nextInt(6); i > 0; i--) {
            request[random.nextInt(request.length)] = (byte) random.nextInt();
        }
        return request;
    }

    byte[] withHostileBody() {
        final String path = oneOf(PATHS);
        return switch (random.nextInt(7)) {
            case 0 -> post(path, noise(random.nextInt(2_000)));
            case 1 -> post(path, mutated(bytes(body())));
            case 2 -> post(path, bytes(body().substring(0, random.nextInt(8))));
            case 3 -> post(path, bytes(nested(random.nextInt(3_000))));
            case 4 ->
                    post(
                            "/v1/completions",
                            bytes(
                                    "{\"model\":\"m\",\"prompt\":\""
                                            + oneOf(List.of("a", " ", "word ", "\\n", "1"))
                                                    .repeat(random.nextInt(300_000))
                                            + "\"}"));
            case 5 -> post("/v1/chat/completions", bytes(manyMessages(random.nextInt(20_000))));
            default -> post(path, bytes(body()));
        };
    }

    /** An object with some members of the API and values that are not theirs. */
    private String body() {
        final StringBuilder body = new StringBuilder("{\"messages\":[");
        body.append("{\"role\":\"user\",\"content\":\"attack @ok\"}]");
        for (int i = random.nextInt(5); i > 0; i--) {
            body.append(",\"").append(oneOf(FIELDS)).append("\":").append(oneOf(VALUES));
        }
        return body.append('}').toString();
    }

    private String nested(int depth) {
        return "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"@ok\"}],\""
                + oneOf(FIELDS)
                + "\":"
                + "[".repeat(depth)
                + "]".repeat(depth)
                + "}";
    }

    private static String manyMessages(int count) {
        return "{\"model\":\"m\",\"messages\":["
                + "{\"role\":\"user\",\"content\":\"a\"},".repeat(count)
                + "{\"role\":\"user\",\"content\":\"@ok\"}]}";
    }

    byte[] withTemplate() {
        final String template =
                switch (random.nextInt(4)) {
                    case 0 -> "(".repeat(random.nextInt(100_000));
                    case 1 -> "{{ " + "(".repeat(random.nextInt(9_000)) + " }}"; // never closed
                    default -> oneOf(TEMPLATES);
                };
        return post(
                oneOf(List.of("/v1/chat/completions", "/tokenize")),
                bytes(
                        "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"@ok\"}],"
                                + "\"chat_template\":\""
                                + template
                                + "\"}"));
    }
}
