package io.kvasir.registry.etcd;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.io.JsonEOFException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.MappingIterator;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.Stored;
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

    private static final int OK = 200;
    private static final int BAD_REQUEST = 400;
    private static final int UNAUTHENTICATED = 401;
    private static final int FORBIDDEN = 403;
    private static final String RANGE = "/v3/kv/range";
    private static final int MAX_ERROR_BYTES = 4096;

    /** More cannot be the key of an instance. */
    private static final int MAX_KEY_LENGTH = 4096;

    /** A key as it is stored, with its lease. */
    public record Entry(Stored stored, long lease) {
        /** Its whole key. */
        public String key() {
            return stored.key();
        }

        /** The bytes of the value; none where it was too large to be read. */
        public byte[] value() {
            return stored.value();
        }

        /** Of its last write. */
        public long revision() {
            return stored.revision();
        }

        Entry unread(String cause) {
            return new Entry(stored.unread(cause), lease);
        }
    }

    /**
     * A moment in the past of a store, which a watch begins after.
     *
     * @param cluster identifier; a backup that is restored keeps it where the members are the same
     * @param term of the leader, which never becomes lower; a backup that is restored has its own
     * @param revision of the last change
     */
    public record Position(String cluster, long term, long revision) {
        /** Whether what an answer says can be a later moment, or the same one, of that store. */
        boolean canBecome(Position later) {
            return cluster.equals(later.cluster)
                    && term <= later.term
                    && revision <= later.revision;
        }
    }

    /** Keys at one moment of the store. */
    public record Range(Position at, List<Entry> entries) {}

    /** Notified of changes of keys. */
    public interface Events {
        /** A key is there or has a new value. */
        void onPut(Entry entry);

        /** A key is no more. */
        void onDelete(String key);
    }

    private final EtcdOptions options;
    private final ReadLimits limits;
    private final ObjectMapper json = new ObjectMapper();
    private final HttpClient http;
    private volatile int member; // which endpoint; a race costs one more attempt
    private volatile String token; // null: log in first
    private volatile InputStream watching;
    private volatile boolean isStopped; // the watch that runs, by this process

    /** Connects with the first call. A value may have what one answer of 4 MiB can have. */
    public EtcdClient(EtcdOptions options) {
        this(options, ReadLimits.ofAnswers());
    }

    EtcdClient(EtcdOptions options, ReadLimits limits) {
        this.options = options;
        this.limits = limits;
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

    /** Null if there is none. What is too large to be read comes without its value. */
    public Entry get(String key) {
        final ObjectNode body = json.createObjectNode().put("key", base64(key));
        final JsonNode answer = readOrNull(body);
        if (answer != null) {
            return onlyOrNull(answer);
        }
        final Entry entry = onlyOrNull(read(body.put("keys_only", true)));
        return entry == null ? null : entry.unread(limits.tooLargeForAnAnswer());
    }

    private Entry onlyOrNull(JsonNode answer) {
        final JsonNode kvs = answer.path("kvs");
        return kvs.isEmpty() ? null : entry(kvs.get(0), limits);
    }

    /**
     * All keys that begin with a prefix, at one revision. What is too large to be read comes
     * without its value.
     *
     * @param prefix not empty
     * @param most further ones are left out
     */
    public Range range(String prefix, int most) {
        return new PagedRead(
                        (from, limit, revision, keysOnly) ->
                                pageOrNull(prefix, from, limit, revision, keysOnly),
                        limits,
                        most)
                .from(base64(prefix));
    }

    /**
     * Puts if the key is still at a revision, 0 for not there.
     *
     * @return its revision from now on, or {@link #CONFLICT}
     */
    public long putIf(String key, long revision, byte[] value, long lease) {
        final ObjectNode put = json.createObjectNode();
        put.put("key", base64(key));
        put.put("value", base64(value));
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
        return answer.path("succeeded").asBoolean() ? position(answer).revision() : CONFLICT;
    }

    private JsonNode pageOrNull(
            String prefix, String from, int limit, long revision, boolean keysOnly) {
        final ObjectNode body = json.createObjectNode();
        body.put("key", from);
        body.put("range_end", rangeEnd(prefix));
        body.put("limit", Integer.toString(limit));
        if (revision > 0) {
            body.put("revision", Long.toString(revision));
        }
        if (keysOnly) {
            body.put("keys_only", true);
            return read(body);
        }
        return readOrNull(body);
    }

    private JsonNode read(ObjectNode body) {
        final JsonNode answer = readOrNull(body);
        if (answer == null) {
            throw tooLarge(RANGE);
        }
        return answer;
    }

    /** Null if the answer is too large. */
    private JsonNode readOrNull(ObjectNode body) {
        final JsonNode answer = callOrNull(RANGE, body);
        if (answer != null && position(answer).revision() <= 0) {
            // whatever answers, it does not say that there are no keys
            throw unavailable(RANGE, new IOException("the answer has no revision"));
        }
        return answer;
    }

    static Position position(JsonNode answer) {
        final JsonNode header = answer.path("header");
        return new Position(
                header.path("cluster_id").asText(),
                header.path("raft_term").asLong(),
                header.path("revision").asLong());
    }

    /** A key of an answer; without its value where that is larger than is kept. */
    static Entry entry(JsonNode kv, ReadLimits limits) {
        final String value = kv.path("value").asText();
        final long length = decodedLength(value);
        final boolean fits = length <= limits.valueBytes();
        final Stored stored =
                new Stored(
                        key(kv.path("key").asText()),
                        fits ? decoded(value) : null,
                        kv.path("mod_revision").asLong());
        return new Entry(
                fits
                        ? stored
                        : stored.unread(
                                length + " bytes, at most " + limits.valueBytes() + " are read"),
                kv.path("lease").asLong());
    }

    /** Cut where it is longer than a key of an instance can be. */
    private static String key(String base64) {
        final String key = new String(decoded(base64), StandardCharsets.UTF_8);
        return key.length() <= MAX_KEY_LENGTH ? key : key.substring(0, MAX_KEY_LENGTH) + "…";
    }

    private static long decodedLength(String base64) {
        final int padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
        return base64.length() / 4 * 3L - padding;
    }

    static byte[] decoded(String base64) {
        try {
            return Base64.getDecoder().decode(base64);
        } catch (IllegalArgumentException e) {
            throw new RegistryException(
                    Kind.UNAVAILABLE, "etcd gives what is no base64: " + e.getMessage(), e);
        }
    }

    private static String base64(String text) {
        return base64(text.getBytes(StandardCharsets.UTF_8));
    }

    static String base64(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }

    /** The first key after all that have the prefix. */
    private static String rangeEnd(String prefix) {
        final byte[] end = prefix.getBytes(StandardCharsets.UTF_8);
        end[end.length - 1]++; // UTF-8 has no byte 0xff
        return base64(end);
    }

    // -- watch

    /**
     * Tells of all changes of keys with a prefix after a moment, until the watch ends. Blocks.
     *
     * <p>It ends where etcd or {@link #stopWatching} ends it, and where changes are not to be had:
     * etcd has compacted them, or is another one. All keys are to be read anew then, as what is
     * there next may be a backup of the same members, whose numbers do not say so. A watch that
     * breaks after it has begun is no failure: the next call says what is wrong.
     */
    public void watch(String prefix, Position after, Events events) {
        final ObjectNode body = json.createObjectNode();
        body.putObject("create_request")
                .put("key", base64(prefix))
                .put("range_end", rangeEnd(prefix))
                .put("start_revision", Long.toString(after.revision() + 1))
                .put("fragment", true); // else one answer may have any number of changes
        boolean hasBegun = false;
        isStopped = false;
        try (BoundedAnswers in =
                new BoundedAnswers(
                        send("/v3/watch", body, true).body().stream, limits.answerBytes())) {
            watching = in;
            final MappingIterator<JsonNode> answers = json.readerFor(JsonNode.class).readValues(in);
            while (answers.hasNextValue()) {
                final JsonNode result = answers.nextValue().path("result");
                in.next();
                hasBegun = true;
                if (result.isMissingNode() || result.path("canceled").asBoolean()) {
                    return; // compacted, or the member is in trouble
                }
                if (result.path("created").asBoolean() && !after.canBecome(position(result))) {
                    return; // another store, or one that has lost its data
                }
                result.path("events").forEach(event -> tell(event, events));
            }
        } catch (BoundedAnswers.TooLarge e) {
            return; // page by page it is read without what is too large
        } catch (IOException e) {
            if (!isStopped && (!hasBegun || isNoJson(e))) {
                throw unavailable("/v3/watch", e);
            }
        } finally {
            watching = null;
        }
    }

    /** An answer that is cut off is no sign of it. */
    private static boolean isNoJson(IOException e) {
        return e instanceof JsonProcessingException && !(e instanceof JsonEOFException);
    }

    private void tell(JsonNode event, Events events) {
        final Entry entry = entry(event.path("kv"), limits);
        if (event.path("type").asText().equals("DELETE")) {
            events.onDelete(entry.key());
        } else {
            events.onPut(entry);
        }
    }

    /** Ends a watch that is running, for instance since no server answers any more. */
    public void stopWatching() {
        isStopped = true;
        final InputStream in = watching;
        if (in != null) {
            StreamLimit.end(in);
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

    /** What an answer brings: bytes that are all there, null if they are too many, or a stream. */
    private static final class Body {
        private final byte[] bytes;
        private final InputStream stream;

        Body(byte[] bytes, InputStream stream) {
            this.bytes = bytes;
            this.stream = stream;
        }
    }

    /**
     * Errors are read as a stream, for what can be had of them: etcd ends them with trailers, which
     * the JDK's client does not know; with assertions on, it gives nothing of such an answer.
     */
    private HttpResponse.BodyHandler<Body> handler(boolean isStream) {
        return info ->
                isStream || info.statusCode() != OK
                        ? BodySubscribers.mapping(
                                BodySubscribers.ofInputStream(), in -> new Body(null, in))
                        : BodySubscribers.mapping(
                                new BoundedBody(limits.answerBytes()),
                                bytes -> new Body(bytes, null));
    }

    private JsonNode call(String path, ObjectNode body) {
        final JsonNode answer = callOrNull(path, body);
        if (answer == null) {
            throw tooLarge(path);
        }
        return answer;
    }

    /** Null if the answer is too large. */
    private JsonNode callOrNull(String path, ObjectNode body) {
        return treeOrNull(path, send(path, body, false));
    }

    private RegistryException tooLarge(String path) {
        return unavailable(
                path,
                new IOException(
                        "the answer has more than "
                                + limits.answerBytes()
                                + " bytes, which are the most that is read"));
    }

    private JsonNode treeOrNull(String path, HttpResponse<Body> response) {
        final byte[] bytes = response.body().bytes;
        try {
            return bytes == null ? null : json.readTree(bytes);
        } catch (IOException e) {
            throw unavailable(path, e);
        }
    }

    /** Sends a request as the user; logs in again where the token is no longer valid. */
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
        final JsonNode answer = treeOrNull(path, response);
        if (answer == null) {
            throw tooLarge(path);
        }
        final String fresh = answer.path("token").asText();
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
