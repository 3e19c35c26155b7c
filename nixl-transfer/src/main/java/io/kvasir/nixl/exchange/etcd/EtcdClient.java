package io.kvasir.nixl.exchange.etcd;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What records need of etcd 3.4 and later, over its JSON gateway: numbers of 64 bits are strings,
 * keys and values are base64, and what is zero or false is left out. Any thread.
 *
 * @see <a href="https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/">the gateway</a>
 */
final class EtcdClient implements AutoCloseable {
    private static final int OK = 200;

    /** A key as it is stored. */
    record Entry(String key, String base64, long revision, long lease) {
        byte[] value() {
            return Base64.getDecoder().decode(base64);
        }
    }

    /** Keys at one revision of the store. */
    record Range(long revision, List<Entry> entries) {}

    /** Notified of changes of keys. */
    interface Events {
        void onPut(Entry entry);

        void onDelete(String key);
    }

    private final EtcdConfig config;
    private final ObjectMapper json = new ObjectMapper();
    private final HttpClient http;
    private volatile int member; // which endpoint; a race costs one more attempt
    private volatile InputStream watching;

    EtcdClient(EtcdConfig config) {
        this.config = config;
        http =
                HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .connectTimeout(config.timeout())
                        .build();
    }

    // -- leases

    long grant() {
        final ObjectNode body = json.createObjectNode();
        body.put("TTL", Long.toString(config.ttl().toSeconds()));
        return call("/v3/lease/grant", body).path("ID").asLong();
    }

    /** False if the lease has ended. */
    boolean keepAlive(long lease) {
        final ObjectNode body = json.createObjectNode().put("ID", Long.toString(lease));
        return call("/v3/lease/keepalive", body).path("result").path("TTL").asLong() > 0;
    }

    void revoke(long lease) {
        call("/v3/lease/revoke", json.createObjectNode().put("ID", Long.toString(lease)));
    }

    // -- keys

    /** Null if there is none. */
    Entry get(String key) {
        final List<Entry> entries =
                entries(call("/v3/kv/range", json.createObjectNode().put("key", base64(key))));
        return entries.isEmpty() ? null : entries.getFirst();
    }

    Range all() {
        final ObjectNode body = json.createObjectNode();
        body.put("key", base64(config.prefix()));
        body.put("range_end", rangeEnd());
        body.put("limit", Integer.toString(MetadataExchange.MAX_RECORDS));
        final JsonNode answer = call("/v3/kv/range", body);
        return new Range(answer.path("header").path("revision").asLong(), entries(answer));
    }

    /** Puts if the key is still at a revision, 0 for not there; false if it is not. */
    boolean putIf(String key, long revision, byte[] value, long lease) {
        final ObjectNode put = json.createObjectNode();
        put.put("key", base64(key));
        put.put("value", Base64.getEncoder().encodeToString(value));
        put.put("lease", Long.toString(lease));
        return transact(key, revision, "request_put", put);
    }

    /** Deletes if the key is still at a revision. */
    boolean deleteIf(String key, long revision) {
        final ObjectNode delete = json.createObjectNode().put("key", base64(key));
        return transact(key, revision, "request_delete_range", delete);
    }

    private boolean transact(String key, long revision, String kind, ObjectNode request) {
        final ObjectNode body = json.createObjectNode();
        body.putArray("compare")
                .addObject()
                .put("key", base64(key))
                .put("target", "MOD")
                .put("result", "EQUAL")
                .put("mod_revision", Long.toString(revision));
        body.putArray("success").addObject().set(kind, request);
        return call("/v3/kv/txn", body).path("succeeded").asBoolean();
    }

    private static List<Entry> entries(JsonNode answer) {
        final List<Entry> entries = new ArrayList<>();
        answer.path("kvs").forEach(kv -> entries.add(entry(kv)));
        return entries;
    }

    private static Entry entry(JsonNode kv) {
        return new Entry(
                new String(
                        Base64.getDecoder().decode(kv.path("key").asText()),
                        StandardCharsets.UTF_8),
                kv.path("value").asText(),
                kv.path("mod_revision").asLong(),
                kv.path("lease").asLong());
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    /** The first key after all that have the prefix. */
    private String rangeEnd() {
        final byte[] end = config.prefix().getBytes(StandardCharsets.UTF_8);
        end[end.length - 1]++; // UTF-8 has no byte 0xff
        return Base64.getEncoder().encodeToString(end);
    }

    // -- watch

    /**
     * Tells of all changes from a revision on, until the connection breaks, etcd ends the watch, or
     * {@link #stopWatching} is called. Blocks.
     */
    void watch(long fromRevision, Events events) {
        final ObjectNode body = json.createObjectNode();
        body.putObject("create_request")
                .put("key", base64(config.prefix()))
                .put("range_end", rangeEnd())
                .put("start_revision", Long.toString(fromRevision));
        final HttpRequest request = request("/v3/watch", body);
        try (InputStream in = send(request, BodyHandlers.ofInputStream()).body()) {
            watching = in;
            final MappingIterator<JsonNode> answers = json.readerFor(JsonNode.class).readValues(in);
            while (answers.hasNextValue()) {
                final JsonNode result = answers.nextValue().path("result");
                if (result.isMissingNode() || result.path("canceled").asBoolean()) {
                    return; // compacted, or the member is in trouble
                }
                result.path("events").forEach(event -> tell(event, events));
            }
        } catch (IOException e) {
            throw unavailable("/v3/watch", e);
        } finally {
            watching = null;
        }
    }

    private static void tell(JsonNode event, Events events) {
        final Entry entry = entry(event.path("kv"));
        if (event.path("type").asText().equals("DELETE")) {
            events.onDelete(entry.key());
        } else {
            events.onPut(entry);
        }
    }

    /** Ends a watch that is running, for instance since no server answers any more. */
    void stopWatching() {
        final InputStream in = watching;
        if (in != null) {
            try {
                in.close();
            } catch (IOException e) {
                throw unavailable("/v3/watch", e);
            }
        }
    }

    // -- requests

    private HttpRequest request(String path, ObjectNode body) {
        final URI endpoint = config.endpoints().get(member % config.endpoints().size());
        return HttpRequest.newBuilder(endpoint.resolve(path))
                .POST(BodyPublishers.ofString(body.toString()))
                .build();
    }

    private JsonNode call(String path, ObjectNode body) {
        final HttpResponse<String> response = send(request(path, body), BodyHandlers.ofString());
        try {
            return json.readTree(response.body());
        } catch (JsonProcessingException e) {
            throw unavailable(path, e);
        }
    }

    /** Waits for the answer, of a stream for its beginning, no longer than the timeout. */
    private <T> HttpResponse<T> send(HttpRequest request, HttpResponse.BodyHandler<T> handler) {
        final CompletableFuture<HttpResponse<T>> answer = http.sendAsync(request, handler);
        final HttpResponse<T> response;
        try {
            response = answer.get(config.timeout().toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException | TimeoutException e) {
            answer.cancel(true);
            tryNextMember();
            throw unavailable(request.uri().toString(), e);
        } catch (InterruptedException e) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw unavailable(request.uri().toString(), e);
        }
        if (response.statusCode() != OK) {
            tryNextMember();
            throw new ExchangeException(
                    Kind.UNAVAILABLE,
                    "etcd answers "
                            + request.uri()
                            + " with status "
                            + response.statusCode()
                            + ": "
                            + response.body());
        }
        return response;
    }

    private synchronized void tryNextMember() {
        member = (member + 1) % config.endpoints().size();
    }

    private ExchangeException unavailable(String what, Exception cause) {
        return new ExchangeException(
                Kind.UNAVAILABLE,
                "etcd at " + config.endpoints() + " fails at " + what + ": " + cause,
                cause);
    }

    @Override
    public void close() {
        http.shutdownNow();
    }
}
