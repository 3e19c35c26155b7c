package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.DropReason;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.SocketPoller;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The source of one (worker, rank) whose events come over ZMQ: topic, number of 8 bytes big-endian,
 * payload. It has no thread and no socket of its own: a {@link EventFeed} passes messages in, on
 * the thread of its lane. While a replay is wanted or under way, live messages wait here, up to a
 * limit; what is dropped then is asked for afterwards.
 *
 * <p>Methods of {@link EventSource}: any thread. All others: the lane's thread.
 */
final class ZmqSource implements EventSource {
    private static final int BURST = 256;

    /** A live message that waits for the end of a replay. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Waiting(long sequence, byte[] payload) {}

    private final EngineStream stream;
    private final ZmqTransport transport;
    private final EventFeed feed;
    private final SourceLane lane;
    private final Endpoint replayEndpoint;
    private final Queue<Waiting> waiting = new ArrayDeque<>(0);
    private final AtomicBoolean closed = new AtomicBoolean();
    private long waitingBytes;
    private boolean droppedSome;
    private boolean wantsReplay; // and waits for its turn
    private ReplaySession replay;
    private SocketPoller.Timer tailCheck;
    private int publishers;
    private int laneIndex;

    ZmqSource(EngineStream stream, ZmqTransport transport, EventFeed feed) {
        this.stream = stream;
        this.transport = transport;
        this.feed = feed;
        this.lane = feed.lane;
        final String address = stream.config().replayEndpoint();
        this.replayEndpoint = address == null ? null : Endpoint.parse(address).connectable();
    }

    EventFeed feed() {
        return feed;
    }

    String topic() {
        return stream.config().topic();
    }

    int dpRank() {
        return stream.config().dpRank();
    }

    int laneIndex() {
        return laneIndex;
    }

    void laneIndex(int index) {
        laneIndex = index;
    }

    /** A live message has arrived. */
    void deliver(long sequence, byte[] bytes, int offset, int length) {
        if (liveWaits() || !waiting.isEmpty()) {
            enqueue(sequence, bytes, offset, length);
            return;
        }
        stream.onMessage(sequence, bytes, offset, length);
        replayNeeded();
    }

    @Override
    public void onLoad(LoadListener listener) {
        stream.onLoad(listener);
    }

    void dropped(DropReason reason, String what) {
        stream.dropped(reason, what);
    }

    private void enqueue(long sequence, byte[] bytes, int offset, int length) {
        final ZmqConfig limits = lane.config();
        if (waiting.size() >= limits.waitingMessages()
                || waitingBytes + length > limits.waitingBytes()
                || !lane.memory().take(length)) {
            droppedSome = true;
            return;
        }
        waitingBytes += length;
        waiting.add(new Waiting(sequence, Arrays.copyOfRange(bytes, offset, offset + length)));
        stream.waitsBefore(waiting.size());
    }

    private void drain() {
        for (int i = 0; i < BURST && !waiting.isEmpty(); i++) {
            if (liveWaits()) {
                return;
            }
            final Waiting next = waiting.poll();
            waitingBytes -= next.payload.length;
            lane.memory().give(next.payload.length);
            stream.waitStill(waiting.size());
            stream.onMessage(next.sequence, next.payload);
        }
        if (!waiting.isEmpty()) {
            lane.poller().execute(this::drain);
            return;
        }
        if (droppedSome) {
            droppedSome = false;
            stream.checkTail(); // what was dropped may have been the newest
        }
        replayNeeded();
    }

    private boolean liveWaits() {
        return replayNeeded() && stream.holdsLive();
    }

    /** Whether a replay is under way or wanted; sees to it that one comes then. */
    private boolean replayNeeded() {
        if (replay != null || wantsReplay) {
            return true;
        }
        if (stream.replayFrom() < 0) {
            return false;
        }
        wantsReplay = true;
        lane.wantReplay(this);
        return true;
    }

    /** It is this source's turn; false if it has no use for it any more. */
    boolean startReplay() {
        wantsReplay = false;
        if (closed.get()) {
            return false;
        }
        replay = new ReplaySession(this, stream, lane, replayEndpoint);
        replay.start();
        return true;
    }

    /** The replay has ended, one way or the other. */
    void replayOver() {
        replay = null;
        lane.poller().execute(this::drain);
        lane.replayOver();
    }

    void tick() {
        stream.tick();
        replayNeeded();
    }

    void connected() {
        forgetWaiting(); // they may be of another life of the engine, and are asked for
        stream.onConnected();
        cancelTailCheck();
        if (lane.config().tailCheckMs() > 0) {
            tailCheck =
                    lane.poller()
                            .schedule(
                                    TimeUnit.MILLISECONDS.toNanos(lane.config().tailCheckMs()),
                                    this::checkTail);
        }
        replayNeeded();
    }

    private void forgetWaiting() {
        lane.memory().give(waitingBytes);
        waitingBytes = 0;
        waiting.clear();
        stream.waitStill(0);
    }

    private void checkTail() {
        stream.checkTail();
        replayNeeded();
    }

    private void cancelTailCheck() {
        if (tailCheck != null) {
            tailCheck.cancel();
        }
    }

    void disconnected(String why) {
        stream.onDisconnected(why);
    }

    void connectFailed(String why) {
        stream.onConnectFailed(why);
    }

    boolean hasPublisher() {
        return publishers > 0;
    }

    /** A publisher has connected to us whose messages are for this source. */
    void publisherCame() {
        publishers++;
        connected();
    }

    void publisherLeft(String why) {
        publishers--;
        if (publishers == 0) {
            disconnected(why);
        }
    }

    /** The lane lets go of a closed source. */
    void released() {
        cancelTailCheck();
        forgetWaiting();
        if (replay != null) {
            replay.cancel();
            replay = null;
            lane.replayOver();
        }
    }

    @Override
    public SourceStatus status() {
        return stream.status();
    }

    @Override
    public void loraNumbers(Map<Long, String> names) {
        stream.loraNumbers(names);
    }

    @Override
    public StreamMemory memory() {
        return stream.memory();
    }

    @Override
    public IndexView view() {
        return stream.view();
    }

    @Override
    public IndexState state() {
        return stream.state();
    }

    @Override
    public boolean ready() {
        return stream.ready();
    }

    @Override
    public double credit(double degradedCredit) {
        return stream.credit(degradedCredit);
    }

    @Override
    public long activityMark() {
        return stream.activityMark();
    }

    @Override
    public void reportServed(long activityBefore) {
        stream.reportServed(activityBefore);
    }

    @Override
    public void clear() {
        stream.clear();
    }

    @Override
    public void reportEngineHit(int believedTokens, int statedTokens, boolean hadWorkerAlone) {
        stream.reportEngineHit(believedTokens, statedTokens, hadWorkerAlone);
    }

    @Override
    public void forgetForecasts() {
        stream.forgetForecasts();
    }

    @Override
    public void judgeHitsAnew() {
        stream.judgeHitsAnew();
    }

    @Override
    public void reportBlockSize(int tokens) {
        stream.reportBlockSize(tokens);
    }

    /** From its return on no event reaches the index; the connection ends soon after. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            stream.close();
            transport.release(this);
        }
    }
}
