package io.kvasir.nats.state;

import io.nats.client.Connection;
import io.nats.client.JetStream;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.JetStreamOptions;
import io.nats.client.NUID;
import io.nats.client.ObjectStoreOptions;
import io.nats.client.PurgeOptions;
import io.nats.client.api.MessageInfo;
import io.nats.client.api.ObjectInfo;
import io.nats.client.api.ObjectStoreConfiguration;
import io.nats.client.api.PublishAck;
import io.nats.client.api.StorageType;
import io.nats.client.api.StreamInfoOptions;
import io.nats.client.impl.Headers;
import io.nats.client.impl.NatsMessage;
import io.nats.client.support.NatsObjectStoreUtil;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * A bucket of JetStream's object store, by its messages: an object is chunks, and one message that
 * names them. It is there from that message on, so its chunks can be read back before.
 *
 * <pre>
 *   stream    OBJ_BUCKET
 *   a chunk   $O.BUCKET.C.CHUNKS     header Kvasir-Chunk: its number from 0
 *   the rest  $O.BUCKET.M.NAME       NAME as base64 for URLs; JSON; replaces the one before
 * </pre>
 *
 * CHUNKS is random, and begins with {@value #OWN} in what is written here. Thread-safe.
 */
final class ObjectBucket {
    /** Most bytes that a chunk's header adds to it. */
    private static final int HEADER_BYTES = 256;

    private static final String OWN = "kvasir-";
    private static final String NUMBER = "Kvasir-Chunk";
    private static final String ROLLUP = "Nats-Rollup";
    private static final String ROLLUP_SUBJECT = "sub";
    private static final int STREAM_NOT_FOUND = 10059;
    private static final int NO_MESSAGE = 10037;
    private static final int NOT_FOUND = 404;

    private final String name;
    private final String stream;
    private final Connection connection;
    private final JetStreamOptions options;
    private final JetStream publisher;
    private final JetStreamManagement management;

    private ObjectBucket(String name, Connection connection, Duration timeout) throws IOException {
        this.name = name;
        this.connection = connection;
        stream = NatsObjectStoreUtil.toStreamName(name);
        options = JetStreamOptions.builder().requestTimeout(timeout).build();
        publisher = connection.jetStream(options);
        management = connection.jetStreamManagement(options);
    }

    /**
     * Opens a bucket; makes it if it is not there.
     *
     * @param timeout of each request
     */
    static ObjectBucket open(Connection connection, String name, Duration timeout)
            throws IOException, JetStreamApiException {
        final ObjectBucket bucket = new ObjectBucket(name, connection, timeout);
        try {
            bucket.management.getStreamInfo(bucket.stream);
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() != STREAM_NOT_FOUND) {
                throw e;
            }
            connection
                    .objectStoreManagement(bucket.storeOptions())
                    .create(
                            ObjectStoreConfiguration.builder(name)
                                    .storageType(StorageType.File)
                                    .build());
        }
        return bucket;
    }

    private ObjectStoreOptions storeOptions() {
        return ObjectStoreOptions.builder(options).build();
    }

    /**
     * Length of all chunks but the last of an object that is written now: as other clients make
     * them, or as long as the server's {@code max_payload} lets them be.
     */
    int chunkBytes() {
        final long most = connection.getMaxPayload() - HEADER_BYTES; // negative before it is known
        return most <= 0
                ? NatsObjectStoreUtil.DEFAULT_CHUNK_SIZE
                : (int) Math.min(most, NatsObjectStoreUtil.DEFAULT_CHUNK_SIZE);
    }

    /** A name for the chunks of an object. */
    static String newChunks() {
        return OWN + NUID.nextGlobal();
    }

    private String chunkSubject(String chunks) {
        return NatsObjectStoreUtil.toChunkPrefix(name) + chunks;
    }

    private String metaSubject(String object) {
        return NatsObjectStoreUtil.toMetaPrefix(name)
                + Base64.getUrlEncoder().encodeToString(object.getBytes(StandardCharsets.UTF_8));
    }

    /**
     * Writes a chunk, durably.
     *
     * @return its number in the stream
     */
    long writeChunk(String chunks, long number, byte[] bytes)
            throws IOException, JetStreamApiException {
        final PublishAck ack =
                publisher.publish(
                        NatsMessage.builder()
                                .subject(chunkSubject(chunks))
                                .headers(new Headers().put(NUMBER, Long.toString(number)))
                                .data(bytes)
                                .build());
        return ack.getSeqno();
    }

    /** Message of a number in the stream; null if it is not there. */
    MessageInfo message(long inStream) throws IOException, JetStreamApiException {
        return orNull(() -> management.getMessage(stream, inStream));
    }

    /** First chunk at or after a number in the stream; null if there is none. */
    MessageInfo chunkFrom(String chunks, long inStream) throws IOException, JetStreamApiException {
        return orNull(() -> management.getNextMessage(stream, inStream, chunkSubject(chunks)));
    }

    /** Number of a chunk in its object; −1 where another client has written it. */
    static long numberOf(MessageInfo chunk) {
        final String text = chunk.getHeaders() == null ? null : chunk.getHeaders().getFirst(NUMBER);
        try {
            return text == null ? -1 : Long.parseLong(text);
        } catch (NumberFormatException e) {
            return -1;
        }
    }

    /** A request whose answer may be that there is none. */
    private interface Request {
        MessageInfo send() throws IOException, JetStreamApiException;
    }

    private static MessageInfo orNull(Request request) throws IOException, JetStreamApiException {
        try {
            return request.send();
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() == NO_MESSAGE || e.getErrorCode() == NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    /** What is known of an object; null if it is not there. */
    ObjectInfo info(String object) throws IOException, JetStreamApiException {
        final MessageInfo message = metaOrNull(object);
        if (message == null) {
            return null;
        }
        final ObjectInfo info = new ObjectInfo(message);
        return info.isDeleted() || info.isLink() ? null : info;
    }

    private MessageInfo metaOrNull(String object) throws IOException, JetStreamApiException {
        return orNull(() -> management.getLastMessage(stream, metaSubject(object)));
    }

    /** How long what is in it stays; zero for ever. */
    Duration maxAge() throws IOException, JetStreamApiException {
        return management.getStreamInfo(stream).getConfiguration().getMaxAge();
    }

    /** How long ago an object was written, by the server's clock; null if it is not there. */
    Duration age(String object) throws IOException, JetStreamApiException {
        final MessageInfo message = metaOrNull(object);
        if (message == null || new ObjectInfo(message).isDeleted()) {
            return null;
        }
        final ZonedDateTime now = management.getStreamInfo(stream).getTimestamp();
        return Duration.between(
                message.getTime(),
                now == null ? ZonedDateTime.now(ZoneOffset.UTC) : now); // null before NATS 2.10
    }

    /** Makes an object of chunks, in place of the one of its name. */
    void publish(String object, ChunkUpload upload) throws IOException, JetStreamApiException {
        final ObjectInfo info =
                ObjectInfo.builder(name, object)
                        .nuid(upload.chunks())
                        .chunks(upload.count())
                        .size(upload.size())
                        .digest(upload.digest())
                        .chunkSize(upload.chunkBytes())
                        .modified(ZonedDateTime.now(ZoneOffset.UTC))
                        .build();
        publisher.publish(
                NatsMessage.builder()
                        .subject(metaSubject(object))
                        .headers(new Headers().put(ROLLUP, ROLLUP_SUBJECT))
                        .data(info.toJson().getBytes(StandardCharsets.UTF_8))
                        .build());
    }

    /** Deletes an object: first what names its chunks. */
    void delete(String object) throws IOException, JetStreamApiException {
        final ObjectInfo info = info(object);
        purge(metaSubject(object));
        if (info != null && info.getNuid() != null) {
            deleteChunks(info.getNuid());
        }
    }

    void deleteChunks(String chunks) throws IOException, JetStreamApiException {
        purge(chunkSubject(chunks));
    }

    private void purge(String subject) throws IOException, JetStreamApiException {
        management.purgeStream(stream, PurgeOptions.subject(subject));
    }

    /** All objects. */
    List<ObjectInfo> list() throws IOException, JetStreamApiException, InterruptedException {
        final List<ObjectInfo> objects = new ArrayList<>();
        for (ObjectInfo info : connection.objectStore(name, storeOptions()).getList()) {
            if (!info.isDeleted() && !info.isLink()) {
                objects.add(info);
            }
        }
        return objects;
    }

    /** Deletes the chunks that were written here and belong to no object. */
    void deleteUnfinished() throws IOException, JetStreamApiException, InterruptedException {
        final String prefix = NatsObjectStoreUtil.toChunkPrefix(name);
        final Set<String> used = new HashSet<>();
        list().forEach(info -> used.add(info.getNuid()));
        for (String subject :
                management
                        .getStreamInfo(stream, StreamInfoOptions.filterSubjects(prefix + "*"))
                        .getStreamState()
                        .getSubjectMap()
                        .keySet()) {
            final String chunks = subject.substring(prefix.length());
            if (chunks.startsWith(OWN) && !used.contains(chunks)) {
                deleteChunks(chunks);
            }
        }
    }
}
