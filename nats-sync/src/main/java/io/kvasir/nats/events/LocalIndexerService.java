package io.kvasir.nats.events;

import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.kvasir.pipeline.publish.LocalIndexer;
import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.Message;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeoutException;

/**
 * Answers queries to a local indexer over core NATS: each with one or more messages to its reply
 * subject, none larger than {@value #MOST_BYTES} bytes or what the server takes. One thread of the
 * client answers them in turn; queries beyond {@value #MOST_WAITING} that wait are dropped, and
 * asked again. After {@value #BYTES_ON_THE_WAY} bytes it waits until the server has them: no more
 * of an answer is in memory beside the dump that all have in common.
 *
 * <p>{@link #close} may be called by any thread, and twice.
 */
public final class LocalIndexerService implements AutoCloseable {
    /** Most bytes of a message. */
    static final int MOST_BYTES = 512 << 10;

    /** Queries that wait. */
    static final int MOST_WAITING = 256;

    /** Bytes after which the server is waited for. */
    static final int BYTES_ON_THE_WAY = 4 << 20;

    private static final Logger LOG = LoggerFactory.getLogger(LocalIndexerService.class);
    private static final long MOST_WAITING_BYTES = 1 << 20;

    private final LocalIndexer indexer;
    private final String subject;
    private final Duration timeout;
    private final LastingConnection connection;
    private volatile boolean closed;

    /**
     * Connects; later it connects again by itself.
     *
     * @param access where NATS is
     * @param names whose events the indexer has
     * @param indexer answers
     * @throws IOException if NATS cannot be reached now
     */
    public LocalIndexerService(NatsAccess access, EventSubjects names, LocalIndexer indexer)
            throws IOException {
        this.indexer = Objects.requireNonNull(indexer);
        this.subject = names.querySubject(indexer.workerId(), indexer.dpRank());
        this.timeout = access.timeout();
        this.connection = NatsEventTransport.connect(access, new Errors(), this::subscribe);
    }

    private void subscribe(Connection made) {
        final Dispatcher dispatcher = made.createDispatcher(this::answer);
        dispatcher.setPendingLimits(MOST_WAITING, MOST_WAITING_BYTES);
        dispatcher.subscribe(subject);
    }

    /** Where queries go. */
    public String subject() {
        return subject;
    }

    private void answer(Message query) {
        final String replyTo = query.getReplyTo();
        if (closed || replyTo == null) {
            return;
        }
        final Connection to = query.getConnection();
        final int most = (int) Math.min(MOST_BYTES, to.getMaxPayload());
        try {
            int onTheWay = 0;
            for (byte[] message : indexer.answer(query.getData(), most)) {
                to.publish(replyTo, message);
                onTheWay += message.length;
                if (onTheWay >= BYTES_ON_THE_WAY) {
                    to.flush(timeout);
                    onTheWay = 0;
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        } catch (IllegalStateException | IllegalArgumentException | TimeoutException e) {
            LOG.debug("a query was not answered; it will be asked again", e);
        }
    }

    /** Without its subject nothing asks it. */
    private final class Errors extends ServerErrors {
        @Override
        protected String essential() {
            return refusedAll(List.of(subject));
        }
    }

    @Override
    public void close() {
        closed = true;
        connection.close();
    }
}
