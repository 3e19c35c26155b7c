package io.kvasir.registry.etcd;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** What etcd's gateway answers to reads and to one watch, and what it should not. */
final class ScriptedEtcd implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Pattern START = Pattern.compile("\"start_revision\":\"(\\d+)\"");

    private final HttpServer server;
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final SortedMap<String, String> keys = new TreeMap<>(); // guarded by this, as all below
    private final Map<String, Long> revisions = new LinkedHashMap<>();
    private long revision = 10;
    private String read; // null: as etcd answers
    private String refusal; // null: none
    private int reads;
    private HttpExchange watching;

    ScriptedEtcd() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/v3/kv/range", this::read);
        server.createContext("/v3/watch", this::watch);
        server.start();
    }

    URI uri() {
        return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
    }

    private synchronized void read(HttpExchange exchange) throws IOException {
        final JsonNode request = JSON.readTree(exchange.getRequestBody().readAllBytes());
        final boolean isRange = request.has("range_end");
        if (isRange) {
            reads++;
        }
        final String usual = read == null || !isRange ? page(request, isRange) : read;
        final byte[] bytes = (refusal == null ? usual : refusal).getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(
                refusal == null ? 200 : 400, bytes.length == 0 ? -1 : bytes.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(bytes);
        }
    }

    private String page(JsonNode request, boolean isRange) throws IOException {
        final String from =
                new String(
                        Base64.getDecoder().decode(request.path("key").asText()),
                        StandardCharsets.UTF_8);
        final int limit = request.path("limit").asInt(1);
        final List<String> found = new ArrayList<>();
        final SortedMap<String, String> rest =
                isRange ? keys.tailMap(from) : keys.subMap(from, from + '\0');
        for (String kv : rest.values()) {
            if (found.size() < limit) {
                found.add(request.path("keys_only").asBoolean() ? withoutValue(kv) : kv);
            }
        }
        return "{\"header\":{\"revision\":\"%d\"},\"kvs\":[%s],\"more\":%s}"
                .formatted(revision, String.join(",", found), rest.size() > found.size());
    }

    private static String withoutValue(String kv) throws IOException {
        return ((ObjectNode) JSON.readTree(kv)).without("value").toString();
    }

    private synchronized void watch(HttpExchange exchange) throws IOException {
        final Matcher start =
                START.matcher(
                        new String(
                                exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8));
        final long from = start.find() ? Long.parseLong(start.group(1)) : revision + 1;
        exchange.sendResponseHeaders(200, Long.MAX_VALUE); // so that its end is a break
        watching = exchange;
        send("\"created\":true");
        for (Map.Entry<String, Long> written : revisions.entrySet()) {
            if (written.getValue() >= from) { // since all keys were read
                send("\"events\":[{\"kv\":" + keys.get(written.getKey()) + "}]");
            }
        }
    }

    /** Tells the watch, if one runs. */
    private void send(String result) {
        if (watching != null) {
            final String line =
                    "{\"result\":{\"header\":{\"revision\":\"%d\"},%s}}\n"
                            .formatted(revision, result);
            try {
                watching.getResponseBody().write(line.getBytes(StandardCharsets.UTF_8));
                watching.getResponseBody().flush();
            } catch (IOException e) {
                watching = null; // its client has left
            }
        }
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String kv(String key, String value, long revision) {
        return "{\"key\":\"%s\",\"value\":\"%s\",\"mod_revision\":\"%d\"}"
                .formatted(key, value, revision);
    }

    synchronized void put(String key, String value) {
        revision++;
        keys.put(key, kv(base64(key), base64(value), revision));
        revisions.put(key, revision);
        send("\"events\":[{\"kv\":" + keys.get(key) + "}]");
    }

    /** Tells of a key and a value as they would be in base64, without there being one. */
    synchronized void tell(String key, String value) {
        send("\"events\":[{\"kv\":" + kv(key, value, revision) + "}]");
    }

    /** Answers 200 with this when all keys are read; null: as etcd does. */
    synchronized void answerReads(String body) {
        read = body;
    }

    /** Has all keys be read anew. */
    synchronized void cancelWatch() throws IOException {
        send("\"canceled\":true");
        endWatch();
    }

    /** Answers every read with status 400 and this; null: as etcd does. */
    synchronized void refuseReads(String body) {
        refusal = body;
    }

    /** Ends it as a lost connection does. */
    synchronized void endWatch() {
        if (watching != null) {
            watching.close();
            watching = null;
        }
    }

    /** How often all keys were read. */
    synchronized int reads() {
        return reads;
    }

    synchronized boolean isWatched() {
        return watching != null;
    }

    @Override
    public synchronized void close() {
        endWatch();
        server.stop(0);
        threads.shutdownNow();
    }
}
