package io.kvasir.nats;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.PeerDirectory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamOptions;
import io.nats.client.KeyValue;
import io.nats.client.KeyValueManagement;
import io.nats.client.KeyValueOptions;
import io.nats.client.api.KeyValueConfiguration;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueOperation;
import io.nats.client.api.KeyValueWatcher;
import io.nats.client.impl.NatsKeyValueWatchSubscription;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.ZonedDateTime;
import java.util.Base64;

/** Records in a bucket of NATS's key-value store: a key a record, its name as base64 for URLs. */
final class RecordBucket {
    private static final int WRONG_REVISION = 10071;
    private static final int STREAM_NOT_FOUND = 10059;
    private static final int MAX_TRIES = 8;

    private final String bucket;
    private final KeyValueManagement management;
    private final KeyValue store;
    private final ZonedDateTime made;

    private RecordBucket(
            String bucket, KeyValueManagement management, KeyValue store, ZonedDateTime made) {
        this.bucket = bucket;
        this.management = management;
        this.store = store;
        this.made = made;
    }

    /** A call that NATS may refuse. */
    private interface Call<T> {
        T run() throws IOException, JetStreamApiException, InterruptedException;
    }

    private static <T> T call(String what, Call<T> call) {
        try {
            return call.run();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw unavailable(what, e);
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            throw unavailable(what, e); // illegal state: the connection is closed
        }
    }

    static ExchangeException unavailable(String what, Exception cause) {
        return new ExchangeException(
                Kind.UNAVAILABLE, "NATS fails at " + what + ": " + cause, cause);
    }

    /** Opens the bucket; makes it if it is not there. */
    static RecordBucket open(Connection connection, NatsConfig config) {
        final KeyValueOptions options =
                KeyValueOptions.builder()
                        .jetStreamOptions(
                                JetStreamOptions.builder().requestTimeout(config.timeout()).build())
                        .build();
        return call(
                "bucket " + config.bucket(),
                () -> {
                    final KeyValueManagement management = connection.keyValueManagement(options);
                    ZonedDateTime made = made(management, config.bucket());
                    if (made == null) {
                        management.create(
                                KeyValueConfiguration.builder()
                                        .name(config.bucket())
                                        .maxHistoryPerKey(1)
                                        .ttl(config.ttl())
                                        .build());
                        made = made(management, config.bucket());
                    }
                    return new RecordBucket(
                            config.bucket(),
                            management,
                            connection.keyValue(config.bucket(), options),
                            made);
                });
    }

    /** When a bucket was made; null if it is not there. */
    private static ZonedDateTime made(KeyValueManagement management, String bucket)
            throws IOException, JetStreamApiException {
        try {
            return management.getStatus(bucket).getBackingStreamInfo().getCreateTime();
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() == STREAM_NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    /** Whether it is still the bucket that was opened, and not deleted or another. */
    boolean isSame() {
        return call(
                "status of " + bucket,
                () -> {
                    final ZonedDateTime now = made(management, bucket);
                    return now != null && now.equals(made);
                });
    }

    private static String key(String name) {
        return Base64.getUrlEncoder()
                .withoutPadding()
                .encodeToString(name.getBytes(StandardCharsets.UTF_8));
    }

    /** The name that a key stands for. */
    static String name(String key) {
        return new String(Base64.getUrlDecoder().decode(key), StandardCharsets.UTF_8);
    }

    static boolean isPut(KeyValueEntry entry) {
        return entry.getOperation() == KeyValueOperation.PUT;
    }

    NatsKeyValueWatchSubscription watch(KeyValueWatcher watcher) {
        return call("watching " + bucket, () -> store.watchAll(watcher));
    }

    /** Puts a record, or renews it; a newer one of its name is not replaced. */
    void put(PeerRecord record) {
        final String key = key(record.name());
        for (int i = 0; i < MAX_TRIES; i++) {
            final KeyValueEntry entry = call("get " + record.name(), () -> store.get(key));
            PeerDirectory.requireNewer(record, entry == null ? null : decoded(entry));
            if (putIf(key, entry, record)) {
                return;
            }
        }
        throw new ExchangeException(
                Kind.UNAVAILABLE,
                "others wrote "
                        + record.name()
                        + " each of "
                        + MAX_TRIES
                        + " times; is the name unique?");
    }

    private boolean putIf(String key, KeyValueEntry seen, PeerRecord record) {
        return call(
                "put " + record.name(),
                () -> {
                    try {
                        if (seen == null) {
                            store.create(key, record.encode());
                        } else {
                            store.update(key, record.encode(), seen.getRevision());
                        }
                        return true;
                    } catch (JetStreamApiException e) {
                        if (e.getApiErrorCode() == WRONG_REVISION) {
                            return false;
                        }
                        throw e;
                    }
                });
    }

    /** Deletes a record if it is still that. */
    void delete(PeerRecord record) {
        final String key = key(record.name());
        final KeyValueEntry entry = call("get " + record.name(), () -> store.get(key));
        if (entry != null && record.equals(decoded(entry))) {
            call(
                    "delete " + record.name(),
                    () -> {
                        store.delete(key, entry.getRevision());
                        return null;
                    });
        }
    }

    /** Null if the value is no record. */
    static PeerRecord decoded(KeyValueEntry entry) {
        try {
            return PeerRecord.decode(entry.getValue());
        } catch (ExchangeException e) {
            return null;
        }
    }
}
