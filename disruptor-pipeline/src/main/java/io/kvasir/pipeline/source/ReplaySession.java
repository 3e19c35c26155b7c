package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.Backoff;
import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.SocketPoller;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

/**
 * Asks an engine's replay socket for old messages and passes them to the stream that wants them,
 * without waiting: all methods on the poller's thread.
 *
 * <p>Request: an empty frame, then the first number wanted as 8 bytes big-endian. Answer: one
 * message per batch, {@code ["", topic, number, payload]} or without the topic in older engines; at
 * the end one whose number is −1. Each request has a connection of its own, so that a late answer
 * of an abandoned one is never taken for the answer of the next.
 *
 * <p>Engines drop without a word what a slow reader has no room for, the end too. An answer that
 * breaks off after it has brought something new is therefore no failed attempt: the rest is asked
 * for.
 */
final class ReplaySession implements Connector.Listener {
    private static final Logger LOG = LoggerFactory.getLogger(ReplaySession.class);
    private static final int MAX_FRAMES = 4;
    private static final long FULL_RING_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);

    private final ZmqSource source;
    private final EngineStream stream;
    private final SourceLane lane;
    private final Endpoint endpoint;
    private final Backoff backoff;
    private final long patienceNs;
    private Connector connector;
    private boolean hasIgnored; // messages that are no answers
    private SocketPoller.Timer timer;
    private long lastSeenNs;
    private int failedAttempts; // since one that has brought something
    private boolean asked; // in this attempt
    private String failure = "";
    private boolean over;

    ReplaySession(ZmqSource source, EngineStream stream, SourceLane lane, Endpoint endpoint) {
        this.source = source;
        this.stream = stream;
        this.lane = lane;
        this.endpoint = endpoint;
        this.backoff = lane.backoff();
        this.patienceNs = TimeUnit.MILLISECONDS.toNanos(lane.config().replayTimeoutMs());
    }

    /** Begins an attempt. */
    void start() {
        if (over) {
            return;
        }
        lastSeenNs = System.nanoTime();
        asked = false;
        connector = lane.connector(endpoint, lane.replayOptions(), this);
        timer = lane.poller().schedule(patienceNs, this::checkPatience);
        connector.start();
    }

    private void checkPatience() {
        final long leftNs = patienceNs - (System.nanoTime() - lastSeenNs);
        if (leftNs > 0) {
            timer = lane.poller().schedule(leftNs, this::checkPatience);
        } else {
            attemptFailed();
        }
    }

    @Override
    public void connected() {
        final long from = stream.replayFrom();
        if (from < 0) {
            end();
            return;
        }
        lastSeenNs = System.nanoTime();
        asked = true;
        failure = "";
        connector.send(new byte[0], ByteBuffer.allocate(Long.BYTES).putLong(from).array());
    }

    @Override
    public boolean received(ZmtpMessage message) {
        lastSeenNs = System.nanoTime();
        final int frames = message.frames();
        if (frames < 2 || frames > MAX_FRAMES || message.length(frames - 2) != Long.BYTES) {
            ignored(frames);
            return true;
        }
        final long sequence = message.readLong(frames - 2);
        if (sequence < 0) {
            stream.replayEnded();
            end();
            return true;
        }
        switch (stream.onReplayed(sequence, message.copy(frames - 1))) {
            case CONTINUE -> {}
            case STOP -> end(); // the stream has changed its mind about what it wants
            case RETRY -> {
                lane.poller().schedule(FULL_RING_PAUSE_NS, connector::resume);
                return false;
            }
        }
        return true;
    }

    private void ignored(int frames) {
        if (!hasIgnored) {
            hasIgnored = true;
            LOG.warn("{}: replay answers of {} frames are ignored", endpoint, frames);
        }
    }

    @Override
    public void disconnected(String why) {
        failure = withoutAddress(why);
        attemptFailed();
    }

    @Override
    public void connectFailed(String why) {
        failure = withoutAddress(why);
        attemptFailed(); // a port that is closed is no reason to wait for as long as for an answer
    }

    private String withoutAddress(String why) {
        final String address = endpoint.text() + ": ";
        return why.startsWith(address) ? why.substring(address.length()) : why;
    }

    private void attemptFailed() {
        stop();
        failedAttempts = asked && stream.hasReplayed() ? 0 : failedAttempts + 1;
        if (failedAttempts < lane.config().replayAttempts()) {
            timer = lane.poller().schedule(backoff.nextNs(), this::start);
            return;
        }
        LOG.warn("{}: replay given up: {}", endpoint, failure.isEmpty() ? "no answer" : failure);
        stream.replayFailed(failure);
        end();
    }

    private void end() {
        cancel();
        source.replayOver();
    }

    private void stop() {
        timer.cancel();
        connector.close();
    }

    /** Ends the session without a word to the source. */
    void cancel() {
        over = true;
        stop();
    }
}
