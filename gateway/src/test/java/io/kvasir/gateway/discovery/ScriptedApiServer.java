package io.kvasir.gateway.discovery;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;

import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

/**
 * What an API server does for EndpointSlices of the namespace {@code serving}: lists of pages,
 * watches with bookmarks, versions that are gone, refusals. One client.
 */
final class ScriptedApiServer implements AutoCloseable {
    private static final String PATH =
            "/apis/discovery.k8s.io/v1/namespaces/serving/endpointslices";

    private final HttpServer server;
    private final ExecutorService threads = Executors.newVirtualThreadPerTaskExecutor();
    private final Map<String, String> slices = new LinkedHashMap<>(); // guarded by this
    private final NavigableMap<Long, String> history = new TreeMap<>(); // guarded by this
    private HttpExchange watching; // guarded by this, as all below
    private long version = 1;
    private int pageSize = Integer.MAX_VALUE;
    private int refusal;
    private boolean areListsRefused;
    private int refusals;
    private int lists;
    private int watches;
    private boolean isGone;
    private String noList; // null: lists are lists
    private String lastQuery = "";
    private String lastVersion = "";
    private String lastAuthorization = "";

    ScriptedApiServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext(PATH, this::handle);
        server.start();
    }

    URI uri() {
        return URI.create("http://127.0.0.1:" + server.getAddress().getPort());
    }

    private synchronized void handle(HttpExchange exchange) throws IOException {
        lastQuery = exchange.getRequestURI().getRawQuery();
        lastAuthorization = exchange.getRequestHeaders().getFirst("Authorization");
        final Map<String, String> query = new LinkedHashMap<>();
        for (String each : lastQuery.split("&", -1)) {
            query.put(each.split("=", 2)[0], each.split("=", 2)[1]);
        }
        if (refusal != 0 && (areListsRefused || query.containsKey("watch"))) {
            refusals++;
            answer(exchange, refusal, "{\"kind\":\"Status\",\"message\":\"no\"}");
        } else if (query.containsKey("watch")) {
            beginWatch(exchange, query.get("resourceVersion"));
        } else {
            list(exchange, query.getOrDefault("continue", "0"));
        }
    }

    private void beginWatch(HttpExchange exchange, String from) throws IOException {
        watches++;
        lastVersion = from;
        if (isGone) {
            isGone = false;
            answer(exchange, 410, "{\"kind\":\"Status\",\"code\":410}");
            return;
        }
        exchange.sendResponseHeaders(200, 0);
        exchange.getResponseBody().flush();
        watching = exchange;
        history.tailMap(Long.parseLong(from), false).values().forEach(this::send);
        notifyAll();
    }

    private void list(HttpExchange exchange, String from) throws IOException {
        lists++;
        if (noList != null) {
            answer(exchange, 200, noList);
            return;
        }
        final List<String> all = new ArrayList<>(slices.values());
        final int first = Integer.parseInt(from);
        final int end = (int) Math.min(all.size(), (long) first + pageSize);
        answer(
                exchange,
                200,
                all.subList(first, end).stream()
                        .collect(
                                Collectors.joining(
                                        ",",
                                        "{\"metadata\":{\"resourceVersion\":\""
                                                + version
                                                + "\""
                                                + (end < all.size()
                                                        ? ",\"continue\":\"" + end + "\""
                                                        : "")
                                                + "},\"items\":[",
                                        "]}")));
    }

    private static void answer(HttpExchange exchange, int status, String body) throws IOException {
        final byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, bytes.length == 0 ? -1 : bytes.length);
        try (OutputStream out = exchange.getResponseBody()) {
            out.write(bytes);
        }
    }

    private static String event(String type, String object) {
        return "{\"type\":\"%s\",\"object\":%s}\n".formatted(type, object);
    }

    /** What a watch that begins later gets, too. */
    private void tell(String type, String object) {
        history.put(version, event(type, object));
        send(history.get(version));
    }

    private void send(String line) {
        if (watching == null) {
            return;
        }
        try {
            watching.getResponseBody().write(line.getBytes(StandardCharsets.UTF_8));
            watching.getResponseBody().flush();
        } catch (IOException e) {
            watching = null; // the client has gone
        }
    }

    /** Writes a slice and tells of it. */
    synchronized void put(Slice slice) {
        final boolean isNew = !slices.containsKey(slice.name());
        missed(slice);
        tell(isNew ? "ADDED" : "MODIFIED", slices.get(slice.name()));
    }

    /** Writes a slice in place of all, without an event to any watch. */
    synchronized void missed(Slice slice) {
        version++;
        slices.put(slice.name(), slice.json(version));
    }

    synchronized void delete(String name) {
        version++;
        tell("DELETED", slices.remove(name));
    }

    synchronized void bookmark(String at) {
        send(event("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"" + at + "\"}}"));
    }

    /** Knows no version before now: said within the watch, or when the next one begins. */
    synchronized void gone(boolean inTheWatch) throws InterruptedException {
        while (watching == null) {
            wait(60_000);
        }
        if (inTheWatch) {
            send(event("ERROR", "{\"kind\":\"Status\",\"code\":410,\"message\":\"too old\"}"));
        } else {
            isGone = true;
        }
        endWatch();
    }

    synchronized void endWatch() {
        if (watching != null) {
            watching.close();
            watching = null;
        }
    }

    synchronized void pageSize(int slicesOfOne) {
        pageSize = slicesOfOne;
    }

    /** Answers with a status; 0: as usual. */
    synchronized void refuse(int status) {
        refusal = status;
        areListsRefused = true;
    }

    /** Answers watches with a status, and lists as usual. */
    synchronized void refuseWatches(int status) {
        refusal = status;
        areListsRefused = false;
    }

    /** Answers 200 with this to each list; null: as usual. */
    synchronized void answerLists(String body) {
        noList = body;
    }

    synchronized int refusals() {
        return refusals;
    }

    synchronized int lists() {
        return lists;
    }

    synchronized int watches() {
        return watches;
    }

    synchronized String lastQuery() {
        return lastQuery;
    }

    synchronized String lastVersion() {
        return lastVersion;
    }

    synchronized String lastAuthorization() {
        return lastAuthorization;
    }

    @Override
    public void close() {
        endWatch();
        server.stop(0);
        threads.shutdownNow();
    }
}
