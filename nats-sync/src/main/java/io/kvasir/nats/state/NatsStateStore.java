package io.kvasir.nats.state;

import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.LeaseLock;
import io.kvasir.registry.RegistryException;
import io.kvasir.router.spi.StateStore;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.JetStreamApiException;
import io.nats.client.api.ObjectInfo;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;

/**
 * Objects in a bucket of JetStream's object store, which all that reach NATS see; other clients of
 * object stores read them too. The bucket is made if it is not there; one that is there stays as it
 * is, and so does what others have put into it.
 *
 * <p>An object's chunks are written, read back and compared with what was written; then one message
 * makes them the object. Whatever ends the process in between leaves the old object, and chunks of
 * none, which the next holder of the lock deletes.
 *
 * <p>The lock is a {@link LeaseLock}: it ends with the process, after its TTL. It is checked before
 * each step, so that a holder that was stopped for longer changes nothing.
 *
 * <p>Thread-safe; {@link #put} and {@link #delete} one at a time.
 */
public final class NatsStateStore implements LockedStore {
    /** What a put and a delete do, one after the other. */
    enum Step {
        /** Some chunks are written. */
        WRITTEN,
        /** All chunks are. */
        UPLOADED,
        /** They have been read back. */
        VERIFIED,
        /** They are the object. */
        PUBLISHED,
        /** An object is deleted. */
        DELETED
    }

    private static final String CONNECTION = "kvasir-state";

    private final NatsAccess access;
    private final String name;
    private final LeaseLock lock;
    private final Consumer<Step> steps;
    private final ServerErrors errors = new ServerErrors();
    private LastingConnection connection; // null: to be made; guarded by this
    private ObjectBucket opened; // likewise
    private boolean closed; // guarded by this

    /**
     * Connects with the first call; later it connects again by itself.
     *
     * @param access where NATS is
     * @param bucket its name: letters, digits, - and _
     * @param lock of all processes that change something in the bucket; closed with this
     */
    public NatsStateStore(NatsAccess access, String bucket, LeaseLock lock) {
        this(access, bucket, lock, _ -> {});
    }

    /** With what is called after each step, for tests that end or delay it there. */
    NatsStateStore(NatsAccess access, String bucket, LeaseLock lock, Consumer<Step> steps) {
        this.access = access;
        this.name = bucket;
        this.lock = lock;
        this.steps = steps;
    }

    /** Something that NATS may refuse. */
    private interface Call<T> {
        T in(ObjectBucket bucket) throws IOException, JetStreamApiException, InterruptedException;
    }

    private <T> T call(String what, Call<T> call) throws IOException {
        try {
            return call.in(bucket());
        } catch (JetStreamApiException | IllegalStateException e) { // closed connection
            forget();
            throw failed(what, e);
        } catch (IllegalArgumentException e) { // the client refuses it, as each time
            throw new IOException(
                    what
                            + " in "
                            + this
                            + " failed: "
                            + FailureText.of(e)
                            + "; the server's max_payload must be higher for it",
                    e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException(what + " in " + this + " was interrupted");
        } catch (IOException e) {
            unanswered();
            throw failed(what, e);
        }
    }

    private synchronized void unanswered() {
        if (connection != null) {
            connection.unanswered();
        }
    }

    private IOException failed(String what, Exception cause) {
        return new IOException(
                what + " in " + this + " failed: " + errors.reason(cause, access.timeout()), cause);
    }

    private synchronized ObjectBucket bucket()
            throws IOException, JetStreamApiException, InterruptedException {
        if (closed) {
            throw new IOException("it is closed");
        }
        if (connection == null) {
            connection =
                    LastingConnection.make(
                            access.options(CONNECTION).errorListener(errors), this::onConnection);
        }
        if (opened == null) {
            opened = ObjectBucket.open(connection.now(), name, access.timeout());
        }
        return opened;
    }

    private void onConnection(Connection which, ConnectionListener.Events event) {
        if (event == ConnectionListener.Events.RECONNECTED) {
            forget(); // that of a connection that was given up does not answer any more
        }
    }

    private synchronized void forget() {
        opened = null; // it may have been deleted
    }

    private interface Locking {
        boolean run();
    }

    private boolean locking(Locking action) throws IOException {
        try {
            return action.run();
        } catch (RegistryException e) {
            throw new IOException("the lock " + lock + " cannot be asked for", e);
        }
    }

    @Override
    public boolean lock() throws IOException {
        final boolean before = lock.isHeld();
        final boolean held = locking(lock::take);
        if (held && !before) {
            clean();
        }
        return held;
    }

    private void clean() throws IOException {
        try {
            call(
                    "cleaning",
                    bucket -> {
                        bucket.deleteUnfinished();
                        return null;
                    });
        } catch (IOException e) {
            unlock();
            throw e;
        }
    }

    @Override
    public void unlock() {
        lock.release();
    }

    @Override
    public boolean isLocked() {
        return lock.isHeld();
    }

    @Override
    public void checkLock() throws IOException {
        locking(
                () -> {
                    lock.check();
                    return true;
                });
    }

    @Override
    public void put(String object, Content content) throws IOException {
        StateStore.checkName(object);
        checkLock();
        final ChunkUpload upload =
                new ChunkUpload(
                        this::writeChunk,
                        ObjectBucket.newChunks(),
                        call("writing " + object, ObjectBucket::chunkBytes));
        boolean done = false;
        try {
            content.writeTo(upload);
            upload.close();
            steps.accept(Step.UPLOADED);
            call(
                    "reading back " + object,
                    bucket -> {
                        upload.verify(bucket);
                        return null;
                    });
            steps.accept(Step.VERIFIED);
            checkLock();
            done = publish(object, upload);
            steps.accept(Step.PUBLISHED);
        } finally {
            if (!done) {
                discard(upload);
            }
        }
    }

    private long writeChunk(String chunks, long number, byte[] bytes) throws IOException {
        final long at = call("writing", bucket -> bucket.writeChunk(chunks, number, bytes));
        steps.accept(Step.WRITTEN);
        return at;
    }

    /** Makes the chunks the object; what it was before is no more. */
    private boolean publish(String object, ChunkUpload upload) throws IOException {
        final ObjectInfo before = call("looking for " + object, bucket -> bucket.info(object));
        try {
            call(
                    "putting " + object,
                    bucket -> {
                        bucket.publish(object, upload);
                        return null;
                    });
        } catch (IOException e) {
            if (!isPublished(object, upload)) {
                throw e;
            }
        }
        if (before != null && before.getNuid() != null) {
            deleteChunks(before.getNuid());
        }
        return true;
    }

    /** Whether it was published though the answer was lost. */
    private boolean isPublished(String object, ChunkUpload upload) throws IOException {
        final ObjectInfo now = call("looking for " + object, bucket -> bucket.info(object));
        return now != null && upload.chunks().equals(now.getNuid());
    }

    private void discard(ChunkUpload upload) {
        try {
            deleteChunks(upload.chunks());
        } catch (IOException e) {
            forget(); // the next holder of the lock deletes them
        }
    }

    private void deleteChunks(String chunks) throws IOException {
        call(
                "deleting chunks",
                bucket -> {
                    bucket.deleteChunks(chunks);
                    return null;
                });
    }

    @Override
    public InputStream get(String object, long offset) throws IOException {
        StateStore.checkName(object);
        if (offset < 0) {
            throw new IllegalArgumentException("offset is negative: " + offset);
        }
        final ObjectInfo info = call("looking for " + object, bucket -> bucket.info(object));
        if (info == null) {
            return null;
        }
        final ChunkDownload download =
                new ChunkDownload(
                        (chunks, from) ->
                                call("reading " + object, bucket -> bucket.chunkFrom(chunks, from)),
                        info);
        download.skipTo(offset);
        return download;
    }

    @Override
    public Duration maxAge() throws IOException {
        return call("asking for the most age", ObjectBucket::maxAge);
    }

    @Override
    public Duration age(String object) throws IOException {
        StateStore.checkName(object);
        return call("looking for " + object, bucket -> bucket.age(object));
    }

    @Override
    public List<String> list() throws IOException {
        return call("listing", ObjectBucket::list).stream()
                .map(ObjectInfo::getObjectName)
                .filter(StateStore::isName)
                .sorted()
                .toList();
    }

    @Override
    public void delete(String object) throws IOException {
        StateStore.checkName(object);
        checkLock();
        call(
                "deleting " + object,
                bucket -> {
                    bucket.delete(object);
                    return null;
                });
        steps.accept(Step.DELETED);
    }

    @Override
    public void close() {
        lock.close();
        final LastingConnection former;
        synchronized (this) {
            closed = true;
            former = connection;
            connection = null;
        }
        if (former != null) {
            former.close();
        }
    }

    @Override
    public String toString() {
        return "bucket " + name + " at " + access.address();
    }
}
