package io.kvasir.nats;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamOptions;
import io.nats.client.KeyValue;
import io.nats.client.KeyValueManagement;
import io.nats.client.KeyValueOptions;
import io.nats.client.api.KeyValueConfiguration;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueOperation;
import io.nats.client.api.KeyValueStatus;
import io.nats.client.api.KeyValueWatcher;

import java.io.IOException;
import java.time.Duration;
import java.time.ZonedDateTime;

/**
 * A bucket of NATS's key-value store whose values age. What NATS does not answer or refuses is a
 * {@link RegistryException} of kind {@code UNAVAILABLE}.
 */
final class KvBucket {
    /** In place of a revision: another one wrote the key. */
    static final long CONFLICT = -1;

    private static final int WRONG_REVISION = 10071;
    private static final int STREAM_NOT_FOUND = 10059;

    private final String bucket;
    private final KeyValueManagement management;
    private final KeyValue store;
    private final Connection connection;
    private final JetStreamOptions options;
    private final ZonedDateTime made;
    private final Duration ttl;
    private final Refusals refusals;

    private KvBucket(
            String bucket,
            Connection connection,
            KeyValueOptions options,
            KeyValueManagement management,
            KeyValueStatus status,
            Refusals refusals)
            throws IOException {
        this.bucket = bucket;
        this.connection = connection;
        this.options = options.getJetStreamOptions();
        this.refusals = refusals;
        this.management = management;
        store = connection.keyValue(bucket, options);
        made = status.getBackingStreamInfo().getCreateTime();
        ttl = status.getTtl();
    }

    /** A call that NATS may refuse. */
    private interface Call<T> {
        T run() throws IOException, JetStreamApiException, InterruptedException;
    }

    /** Makes calls, and says why one has failed. */
    private record Refusals(LastingConnection connection, ServerErrors errors, Duration timeout) {
        <T> T call(String what, Call<T> call) {
            try {
                return call.run();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw unavailable(what, e);
            } catch (IOException | JetStreamApiException | IllegalStateException e) {
                // illegal state: the connection is closed
                if (e instanceof IOException) {
                    connection.unanswered();
                }
                throw new RegistryException(
                        Kind.UNAVAILABLE,
                        "NATS fails at " + what + ": " + errors.reason(e, timeout),
                        e);
            }
        }
    }

    private <T> T call(String what, Call<T> call) {
        return refusals.call(what, call);
    }

    static RegistryException unavailable(String what, Exception cause) {
        return new RegistryException(
                Kind.UNAVAILABLE, "NATS fails at " + what + ": " + FailureText.of(cause), cause);
    }

    /**
     * Opens a bucket; makes it if it is not there.
     *
     * @param lasting asks the server where a call has no answer
     * @param errors the connection's listener
     * @param ttl of values in a bucket that is made now; another's has its own
     * @param timeout of each request
     */
    static KvBucket open(
            LastingConnection lasting,
            ServerErrors errors,
            String bucket,
            Duration ttl,
            Duration timeout) {
        final KeyValueOptions options =
                KeyValueOptions.builder()
                        .jetStreamOptions(
                                JetStreamOptions.builder().requestTimeout(timeout).build())
                        .build();
        final Connection connection = lasting.now();
        final Refusals refusals = new Refusals(lasting, errors, timeout);
        return refusals.call(
                "bucket " + bucket,
                () -> {
                    final KeyValueManagement management = connection.keyValueManagement(options);
                    KeyValueStatus status = statusOrNull(management, bucket);
                    if (status == null) {
                        status =
                                management.create(
                                        KeyValueConfiguration.builder()
                                                .name(bucket)
                                                .maxHistoryPerKey(1)
                                                .ttl(ttl)
                                                .build());
                    }
                    return new KvBucket(bucket, connection, options, management, status, refusals);
                });
    }

    private static KeyValueStatus statusOrNull(KeyValueManagement management, String bucket)
            throws IOException, JetStreamApiException {
        try {
            return management.getStatus(bucket);
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() == STREAM_NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    /**
     * How long a value outlives its last write.
     *
     * @param otherwise where values stay for ever
     */
    Duration ttl(Duration otherwise) {
        return keepsForEver() ? otherwise : ttl;
    }

    /** Whether values stay until they are deleted. */
    boolean keepsForEver() {
        return ttl.isZero();
    }

    /** Whether it is still the bucket that was opened, and not deleted or another. */
    boolean isSame() {
        return call(
                "status of " + bucket,
                () -> {
                    final KeyValueStatus now = statusOrNull(management, bucket);
                    return now != null && now.getBackingStreamInfo().getCreateTime().equals(made);
                });
    }

    static boolean isPut(KeyValueEntry entry) {
        return entry.getOperation() == KeyValueOperation.PUT;
    }

    /** Watches keys of a pattern, {@code >} for all. */
    KvWatch watch(String pattern, KeyValueWatcher watcher) {
        return call(
                "watching " + bucket,
                () -> KvWatch.begin(connection, options, bucket, pattern, watcher));
    }

    /**
     * Null if it is not there.
     *
     * @throws IllegalArgumentException if no client of NATS takes such a key
     */
    KeyValueEntry get(String key) {
        return call("get " + key, () -> store.get(key));
    }

    /**
     * Writes a key.
     *
     * @param revision at which it must be, 0 for not there
     * @return its revision from now on, or {@link #CONFLICT}
     */
    long put(String key, byte[] value, long revision) {
        return call(
                "put " + key,
                () -> {
                    try {
                        return revision == 0
                                ? store.create(key, value)
                                : store.update(key, value, revision);
                    } catch (JetStreamApiException e) {
                        if (e.getApiErrorCode() == WRONG_REVISION) {
                            return CONFLICT;
                        }
                        throw e;
                    }
                });
    }

    /** Deletes a key; false if it is not at the revision. */
    boolean delete(String key, long revision) {
        return call(
                "delete " + key,
                () -> {
                    try {
                        store.delete(key, revision);
                        return true;
                    } catch (JetStreamApiException e) {
                        if (e.getApiErrorCode() == WRONG_REVISION) {
                            return false;
                        }
                        throw e;
                    }
                });
    }
}
