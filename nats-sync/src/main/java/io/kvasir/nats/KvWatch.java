package io.kvasir.nats;

import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamOptions;
import io.nats.client.JetStreamSubscription;
import io.nats.client.Message;
import io.nats.client.PushSubscribeOptions;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.DeliverPolicy;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueWatcher;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;

/**
 * Watches keys of a bucket as the client's own watch does, and leaves nothing behind where it is
 * refused: the client makes a dispatcher with its thread first and keeps it, until the connection
 * ends, where the subscription then fails. The watcher is called by that thread, and once by the
 * caller's where the bucket is empty.
 */
final class KvWatch {
    private static final Logger LOG = LoggerFactory.getLogger(KvWatch.class);

    private final Connection connection;
    private final Dispatcher dispatcher;
    private final KeyValueWatcher watcher;
    private boolean hasAll; // the watcher was notified of it; guarded by this

    private KvWatch(Connection connection, KeyValueWatcher watcher) {
        this.connection = connection;
        this.watcher = watcher;
        dispatcher = connection.createDispatcher();
    }

    /**
     * Begins with the last value of each key.
     *
     * @param pattern of keys, {@code >} for all
     */
    static KvWatch begin(
            Connection connection,
            JetStreamOptions options,
            String bucket,
            String pattern,
            KeyValueWatcher watcher)
            throws IOException, JetStreamApiException {
        final KvWatch watch = new KvWatch(connection, watcher);
        boolean begun = false;
        try {
            watch.subscribe(options, bucket, pattern);
            begun = true;
        } finally {
            if (!begun) {
                watch.end();
            }
        }
        return watch;
    }

    private void subscribe(JetStreamOptions options, String bucket, String pattern)
            throws IOException, JetStreamApiException {
        final PushSubscribeOptions all =
                PushSubscribeOptions.builder().stream("KV_" + bucket)
                        .ordered(true)
                        .configuration(
                                ConsumerConfiguration.builder()
                                        .ackPolicy(AckPolicy.None)
                                        .deliverPolicy(DeliverPolicy.LastPerSubject)
                                        .build())
                        .build();
        final JetStreamSubscription subscription =
                connection
                        .jetStream(options)
                        .subscribe(
                                "$KV." + bucket + "." + pattern,
                                dispatcher,
                                this::onMessage,
                                false,
                                all);
        if (subscription.getConsumerInfo().getCalculatedPending() == 0) {
            notifyOfAll(); // none was there when it began
        }
    }

    private void onMessage(Message message) {
        final KeyValueEntry entry = new KeyValueEntry(message);
        watcher.watch(entry);
        if (entry.getDelta() == 0) {
            notifyOfAll();
        }
    }

    private synchronized void notifyOfAll() {
        if (!hasAll) {
            hasAll = true;
            watcher.endOfData();
        }
    }

    /** Ends it, with its thread; one that has ended with its connection stays so. */
    void end() {
        try {
            connection.closeDispatcher(dispatcher);
        } catch (IllegalStateException | IllegalArgumentException e) {
            LOG.debug("a watch has ended with its connection", e);
        }
    }
}
