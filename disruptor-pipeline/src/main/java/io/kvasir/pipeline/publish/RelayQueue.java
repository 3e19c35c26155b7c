package io.kvasir.pipeline.publish;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.KvEventSink;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Between a stream that reads an engine and a publisher: takes batches without waiting, and has a
 * thread of its own that publishes them to a transport that does not give up. What it publishes
 * begins with a clear, so that nothing is believed any more that a relay before it has published.
 * Offers come from one thread at a time.
 */
final class RelayQueue implements KvEventSink, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(RelayQueue.class);
    private static final int BATCHES = 8_192;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    /** A batch that waits, with the numbers that are missing before it. */
    private record Entry(KvBatch events, ApplyListener listener, int operations, boolean gap) {}

    private final KvEventPublisher publisher;
    private final CopyCounts copies = new CopyCounts();
    private final BlockingQueue<Entry> queue = new ArrayBlockingQueue<>(BATCHES);
    private final AtomicLong published = new AtomicLong();
    private final Thread thread;
    private long lastMessage = KvBatch.NO_SEQUENCE;
    private volatile boolean closed;

    RelayQueue(KvEventPublisher publisher) {
        this.publisher = publisher;
        this.thread = Thread.ofPlatform().daemon().name("kvasir-relay").start(this::run);
    }

    @Override
    public boolean offer(KvBatch batch) {
        if (closed || queue.remainingCapacity() == 0) {
            return false;
        }
        final long message = batch.sequence();
        final boolean missing = message > lastMessage + 1 && message > 1; // some count from 1
        final boolean gap = missing || batch.leavesOut();
        lastMessage = message;
        final KvBatch events = new KvBatch();
        events.reset(0, message, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        copies.follow(batch, events);
        // one thread offers and there was room: it takes it
        return queue.offer(new Entry(events, batch.listener(), batch.operations(), gap));
    }

    private void run() {
        try {
            published.getAndAdd(publisher.publishAllCleared());
            while (!closed) {
                final Entry entry = queue.take();
                if (entry.gap) {
                    publisher.skipEvent();
                }
                final long before = publisher.lastEventId();
                publisher.publish(entry.events);
                published.getAndAdd(publisher.lastEventId() - before);
                entry.listener.applied(entry.operations);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        } catch (IOException e) {
            LOG.debug("the last events were not published: {}", e.getMessage()); // closing
        } catch (IllegalStateException e) {
            if (!closed) {
                throw e;
            }
            LOG.debug("the last events were not published: {}", e.getMessage());
        }
    }

    long publishedEvents() {
        return published.get();
    }

    @Override
    public void close() {
        closed = true;
        thread.interrupt();
        publisher.close();
        try {
            thread.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
