package io.kvasir.registry.etcd;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.StreamLimit;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodySubscribers;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What keys under leases need of etcd 3.4 and later, over its JSON gateway: numbers of 64 bits are
 * strings, keys and values are base64, and what is zero or false is left out. Any thread. What
 * fails is a {@link RegistryException} of kind {@code UNAVAILABLE} or {@code DENIED}.
 *
 * @see <a href="https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/">the gateway</a>
 */
public final class EtcdClient implements AutoCloseable {
    /** In place of a revision: the key was at another. */
    public static final long CONFLICT = -1;

    /** In place of a revision to watch from: read all keys anew. */
    public static final long READ_ANEW = 0;

    private static final int OK = 200;
    private static final int BAD_REQUEST = 400;
    private static final int UNAUTHENTICATED = 401;
    private static final int FORBIDDEN = 403;
    private static final int MAX_ERROR_BYTES = 4096;
    private static final int PAGE = 1000;

    /** A key as it is stored. */
    public record Entry(String key, String base64, long revision, long lease) {
        /** The bytes of the value. */
        public byte[] value() {
            return decoded(base64);
        }
    }

    /** Keys at one revision of the store. */
    public record Range(long revision, List<Entry> entries) {}

    /** Notified of changes of keys. */
    public interface Events {
        /** A key is there or has a new value. */
        void onPut(Entry entry);

        /** A key is no more. */
        void onDelete(String key);
    }

    private final EtcdOptions options;
    private final ObjectMapper json = new ObjectMapper();
    private final HttpClient http;
    private volatile int member; // which endpoint; a race costs one more attempt
    private volatile String token; // null: log in first
    private volatile InputStream watching;

    /** Connects with the first call. */
    public EtcdClient(EtcdOptions options) {
        this.options = options;
        final HttpClient.Builder builder =
                HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .connectTimeout(options.timeout());
        if (options.tls() != null) {
            builder.sslContext(options.tls());
        }
        http = builder.build();
    }

    // -- leases

    /** Grants a lease. */
    public long grant() {
        final ObjectNode body = json.createObjectNode();
        body.put("TTL", Long.toString(options.ttl().toSeconds()));
        return call("/v3/lease/grant", body).path("ID").asLong();
    }

    /** False if the lease has ended. */
    public boolean keepAlive(long lease) {
        final ObjectNode body = json.createObjectNode().put("ID", Long.toString(lease));
        return call("/v3/lease/keepalive", body).path("result").path("TTL").asLong() > 0;
    }

    /** Ends a lease; all its keys go away. */
    public void revoke(long lease) {
        call("/v3/lease/revoke", json.createObjectNode().put("ID", Long.toString(lease)));
    }

    // -- keys

    /** Null if there is none. */
    public Entry get(String key) {
        final List<Entry> entries = entries(read(json.createObjectNode().put("key", base64(key))));
        return entries.isEmpty() ? null : entries.getFirst();
    }

    /**
     * All keys that begin with a prefix, at one revision.
     *
     * @param prefix not empty
     * @param most further ones are left out
     */
    public Range range(String prefix, int most) {
        final List<Entry> all = new ArrayList<>();
        String from = base64(prefix);
        long revision = 0;
        boolean more = true;
        while (more) {
            final ObjectNode body = json.createObjectNode();
            body.put("key", from);
            body.put("range_end", rangeEnd(prefix));
            body.put("limit", Integer.toString(Math.min(PAGE, most - all.size())));
            if (revision > 0) {
                body.put("revision", Long.toString(revision));
            }
            final JsonNode answer = read(body);
            if (revision == 0) {
                revision = revision(answer);
            }
            all.addAll(entries(answer));
            more = answer.path("more").asBoolean() && all.size() < most;
            if (more) {
                from = base64(all.getLast().key() + '\0');
            }
        }
        return new Range(revision, all);
    }

    /**
     * Puts if the key is still at a revision, 0 for not there.
     *
     * @return its revision from now on, or {@link #CONFLICT}
     */
    public long putIf(String key, long revision, byte[] value, long lease) {
        final ObjectNode put = json.createObjectNode();
        put.put("key", base64(key));
        put.put("value", Base64.getEncoder().encodeToString(value));
        put.put("lease", Long.toString(lease));
        return transact(key, revision, "request_put", put);
    }

    /** Deletes if the key is still at a revision. */
    public boolean deleteIf(String key, long revision) {
        final ObjectNode delete = json.createObjectNode().put("key", base64(key));
        return transact(key, revision, "request_delete_range", delete) != CONFLICT;
    }

    private long transact(String key, long revision, String kind, ObjectNode request) {
        final ObjectNode body = json.createObjectNode();
        body.putArray("compare")
                .addObject()
                .put("key", base64(key))
                .put("target", "MOD")
                .put("result", "EQUAL")
                .put("mod_revision", Long.toString(revision));
        body.putArray("success").addObject().set(kind, request);
        final JsonNode answer = call("/v3/kv/txn", body);
        return answer.path("succeeded").asBoolean() ? revision(answer) : CONFLICT;
    }

    private JsonNode read(ObjectNode body) {
        final String path = "/v3/kv/range";
        final JsonNode answer = call(path, body);
        if (revision(answer) <= 0) { // whatever answers, it does not say that there are no keys
            throw unavailable(path, new IOException("the answer has no revision"));
        }
        return answer;
    }

    private static long revision(JsonNode answer) {
        return answer.path("header").path("revision").asLong();
    }

    private static List<Entry> entries(JsonNode answer) {
        final List<Entry> entries = new ArrayList<>();
        answer.path("kvs").forEach(kv -> entries.add(entry(kv)));
        return entries;
    }

    private static Entry entry(JsonNode kv) {
        return new Entry(
                new String(decoded(kv.path("key").asText()), StandardCharsets.UTF_8),
                kv.path("value").asText(),
                kv.path("mod_revision").asLong(),
                kv.path("lease").asLong());
    }

    private static byte[] decoded(String base64) {
        try {
            return Base64.getDecoder().decode(base64);
        } catch (IllegalArgumentException e) {
            throw new RegistryException(
                    Kind.UNAVAILABLE, "etcd gives what is no base64: " + e.getMessage(), e);
        }
    }

    private static String base64(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    /** The first key after all that have the prefix. */
    private static String rangeEnd(String prefix) {
        final byte[] end = prefix.getBytes(StandardCharsets.UTF_8);
        end[end.length - 1]++; // UTF-8 has no byte 0xff
        return Base64.getEncoder().encodeToString(end);
    }

    // -- watch

    /**
     * Tells of all changes of keys with a prefix from a revision on, until etcd ends the watch or
     * {@link #stopWatching} is called. Blocks.
     *
     * @return the revision to go on from, or {@link #READ_ANEW} if changes since are not to be had:
     *     etcd has compacted them, or is another one
     */
    public long watch(String prefix, long fromRevision, Events events) {
        final ObjectNode body = json.createObjectNode();
        body.putObject("create_request")
                .put("key", base64(prefix))
                .put("range_end", rangeEnd(prefix))
                .put("start_revision", Long.toString(fromRevision));
        long next = fromRevision;
        try (InputStream in = send("/v3/watch", body, true).body().stream) {
            watching = in;
            final MappingIterator<JsonNode> answers = json.readerFor(JsonNode.class).readValues(in);
            while (answers.hasNextValue()) {
                final JsonNode result = answers.nextValue().path("result");
                if (result.isMissingNode() || result.path("canceled").asBoolean()) {
                    return READ_ANEW; // compacted, or the member is in trouble
                }
                if (result.path("created").asBoolean() && revision(result) < fromRevision - 1) {
                    return READ_ANEW; // a store that never got so far: it has lost its data
                }
                for (JsonNode event : result.path("events")) {
                    next = Math.max(next, tell(event, events) + 1);
                }
            }
        } catch (IOException e) {
            throw unavailable("/v3/watch", e);
        } finally {
            watching = null;
        }
        return next;
    }

    /** Returns the revision of the change. */
    private static long tell(JsonNode event, Events events) {
        final Entry entry = entry(event.path("kv"));
        if (event.path("type").asText().equals("DELETE")) {
            events.onDelete(entry.key());
        } else {
            events.onPut(entry);
        }
        return entry.revision();
    }

    /** Ends a watch that is running, for instance since no server answers any more. */
    public void stopWatching() {
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

    private HttpRequest request(String path, ObjectNode body, String auth) {
        final URI endpoint = options.endpoints().get(member % options.endpoints().size());
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(endpoint.resolve(path))
                        .POST(BodyPublishers.ofString(body.toString()));
        if (auth != null) {
            request.header("Authorization", auth);
        }
        return request.build();
    }

    /** What an answer brings: a text that is all there, or a stream. */
    private record Body(String text, InputStream stream) {}

    /**
     * Errors are read as a stream, for what can be had of them: etcd ends them with trailers, which
     * the JDK's client does not know; with assertions on, it gives nothing of such an answer.
     */
    private static HttpResponse.BodyHandler<Body> handler(boolean isStream) {
        return info ->
                isStream || info.statusCode() != OK
                        ? BodySubscribers.mapping(
                                BodySubscribers.ofInputStream(), in -> new Body(null, in))
                        : BodySubscribers.mapping(
                                BodySubscribers.ofString(StandardCharsets.UTF_8),
                                text -> new Body(text, null));
    }

    private JsonNode call(String path, ObjectNode body) {
        return tree(path, send(path, body, false));
    }

    private JsonNode tree(String path, HttpResponse<Body> response) {
        try {
            return json.readTree(response.body().text);
        } catch (JsonProcessingException e) {
            throw unavailable(path, e);
        }
    }

    /** Sends a request as the user, who logs in again where the token is no longer valid. */
    private HttpResponse<Body> send(String path, ObjectNode body, boolean isStream) {
        if (options.login() == null) {
            return checked(sendOnce(request(path, body, null), isStream));
        }
        final String known = token;
        final HttpResponse<Body> response =
                sendOnce(request(path, body, known == null ? login() : known), isStream);
        if (response.statusCode() != UNAUTHENTICATED) {
            return checked(response);
        }
        text(response); // so that its connection ends
        return checked(sendOnce(request(path, body, login()), isStream));
    }

    private String login() {
        final ObjectNode body = json.createObjectNode();
        body.put("name", options.login().user()).put("password", options.login().password().get());
        final String path = "/v3/auth/authenticate";
        final HttpResponse<Body> response = checked(sendOnce(request(path, body, null), false));
        final String fresh = tree(path, response).path("token").asText();
        token = fresh;
        return fresh;
    }

    /** Waits for the answer, of a stream for its beginning, no longer than the timeout. */
    private HttpResponse<Body> sendOnce(HttpRequest request, boolean isStream) {
        final CompletableFuture<HttpResponse<Body>> answer =
                http.sendAsync(request, handler(isStream));
        try {
            return answer.get(options.timeout().toMillis(), TimeUnit.MILLISECONDS);
        } catch (ExecutionException | TimeoutException e) {
            answer.cancel(true);
            tryNextMember();
            throw unavailable(request.uri().toString(), e);
        } catch (InterruptedException e) {
            answer.cancel(true);
            Thread.currentThread().interrupt();
            throw unavailable(request.uri().toString(), e);
        }
    }

    private HttpResponse<Body> checked(HttpResponse<Body> response) {
        if (response.statusCode() == OK) {
            return response;
        }
        tryNextMember();
        final String said = text(response);
        throw new RegistryException(
                isDenial(response.statusCode(), said) ? Kind.DENIED : Kind.UNAVAILABLE,
                "etcd answers "
                        + response.uri()
                        + " with status "
                        + response.statusCode()
                        + ": "
                        + said);
    }

    /** A wrong name or password is a bad request to etcd, as no other request of this class is. */
    private static boolean isDenial(int status, String said) {
        return status == UNAUTHENTICATED
                || status == FORBIDDEN
                || (status == BAD_REQUEST && (said.isEmpty() || said.contains("user")));
    }

    /** The text of an error, as far as it could be read, no longer than the timeout. */
    private String text(HttpResponse<Body> response) {
        final ByteArrayOutputStream text = new ByteArrayOutputStream();
        try (InputStream in = response.body().stream;
                StreamLimit _ = new StreamLimit(in, options.timeout())) {
            int next = in.read();
            while (next >= 0 && text.size() < MAX_ERROR_BYTES) {
                text.write(next);
                next = in.read();
            }
        } catch (IOException e) {
            return text.toString(StandardCharsets.UTF_8); // at the trailers, or the limit
        }
        return text.toString(StandardCharsets.UTF_8);
    }

    private synchronized void tryNextMember() {
        member = (member + 1) % options.endpoints().size();
    }

    private RegistryException unavailable(String what, Exception cause) {
        final String reason =
                cause instanceof TimeoutException
                        ? "no answer in " + options.timeout().toMillis() + " ms"
                        : FailureText.of(cause);
        return new RegistryException(
                Kind.UNAVAILABLE,
                "etcd at " + options.endpoints() + " fails at " + what + ": " + reason,
                cause);
    }

    @Override
    public void close() {
        http.shutdownNow();
    }
}
