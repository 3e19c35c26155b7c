package io.kvasir.nats;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.PeerDirectory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.RegistryException;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueWatcher;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.function.Supplier;

/** Records in a bucket of NATS's key-value store: a key a record, its name as base64 for URLs. */
final class RecordBucket {
    private static final int MAX_TRIES = 8;

    private final KvBucket bucket;

    private RecordBucket(KvBucket bucket) {
        this.bucket = bucket;
    }

    private static <T> T translated(Supplier<T> call) {
        try {
            return call.get();
        } catch (RegistryException e) {
            throw new ExchangeException(Kind.UNAVAILABLE, e.getMessage(), e);
        }
    }

    static ExchangeException unavailable(String what, Exception cause) {
        return new ExchangeException(
                Kind.UNAVAILABLE, "NATS fails at " + what + ": " + FailureText.of(cause), cause);
    }

    /** Opens the bucket; makes it if it is not there. */
    static RecordBucket open(LastingConnection connection, ServerErrors errors, NatsConfig config) {
        return translated(
                () ->
                        new RecordBucket(
                                KvBucket.open(
                                        connection,
                                        errors,
                                        config.bucket(),
                                        config.ttl(),
                                        config.access().timeout())));
    }

    /** How long a record outlives its last renewal; what is given where they stay for ever. */
    Duration ttl(Duration otherwise) {
        return bucket.ttl(otherwise);
    }

    /** Whether it is still the bucket that was opened, and not deleted or another. */
    boolean isSame() {
        return translated(bucket::isSame);
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

    KvWatch watch(KeyValueWatcher watcher) {
        return translated(() -> bucket.watch(">", watcher));
    }

    /** Puts a record, or renews it; a newer one of its name is not replaced. */
    void put(PeerRecord record) {
        final String key = key(record.name());
        for (int i = 0; i < MAX_TRIES; i++) {
            final KeyValueEntry entry = translated(() -> bucket.get(key));
            PeerDirectory.requireNewer(record, entry == null ? null : decoded(entry));
            final long revision = entry == null ? 0 : entry.getRevision();
            if (translated(() -> bucket.put(key, record.encode(), revision)) != KvBucket.CONFLICT) {
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

    /** Deletes a record if it is still that. */
    void delete(PeerRecord record) {
        final String key = key(record.name());
        final KeyValueEntry entry = translated(() -> bucket.get(key));
        if (entry != null && record.equals(decoded(entry))) {
            translated(() -> bucket.delete(key, entry.getRevision())); // or it is another's
        }
    }

    /** Null if the value is no record of the key's name. */
    static PeerRecord decoded(KeyValueEntry entry) {
        try {
            final PeerRecord record = PeerRecord.decode(entry.getValue());
            return entry.getKey().equals(key(record.name())) ? record : null;
        } catch (ExchangeException e) {
            return null;
        }
    }
}
