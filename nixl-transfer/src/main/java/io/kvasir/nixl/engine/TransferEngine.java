package io.kvasir.nixl.engine;

import io.kvasir.nixl.engine.EngineTelemetry.Span;
import io.kvasir.nixl.engine.Transfer.Priority;
import io.kvasir.nixl.engine.Transfer.State;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.NotificationHandler;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import org.HdrHistogram.Histogram;
import org.agrona.ErrorHandler;
import org.agrona.LangUtil;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.AgentRunner;
import org.agrona.concurrent.IdleStrategy;
import org.agrona.concurrent.NanoClock;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/**
 * Moves blocks over one transport: takes transfers from any thread, cuts them into requests, keeps
 * within limits, polls until each is done, and tells. All calls of the transport come from the one
 * thread that runs {@link #doWork}: that of {@link #start}, or the embedder's own duty cycle.
 *
 * <p>Waiting transfers go by priority, then in the order they came; a transfer that is begun is
 * posted to its end before the next of its priority, and one of higher priority goes between two of
 * its requests. One whose next stage is not open, or whose next request notifies and so waits for
 * its own earlier ones, stands aside meanwhile and is first of its priority afterwards. Each round
 * looks at {@value #LOOKS} more of each priority for those that are cancelled, late or of a lost
 * link: they end without becoming the first.
 *
 * <p>What is cancelled, late or failed ends only when the transport has given up all its requests:
 * as long as it cannot, bytes may still arrive, so the transfer stays {@link State#RUNNING} and its
 * blocks stay taken ({@link #stuckRequests}).
 *
 * <p>A failed request loses its link: everything else of the link fails, nothing more is posted to
 * it, and {@link #link} with fresh metadata makes a new one. One that the transport refuses as
 * {@code INVALID} fails its own transfer alone.
 *
 * <p>What listeners and notification handlers throw disturbs nothing: {@link #doWork} throws it
 * when its round is over, the first with the others suppressed, and can be called again. The thread
 * of {@link #start} hands it to its error handler and goes on, also after an {@link Error}.
 *
 * <p>Submitting, posting, polling and ending allocate nothing once arrays have grown.
 */
public final class TransferEngine implements Agent, AutoCloseable {
    private static final long RELEASE_PATIENCE_NS = 5_000_000_000L;
    private static final int CALLS = 256;
    private static final int LOOKS = 8;

    private final KvTransport transport;
    private final TransferConfig config;
    private final NanoClock clock;
    private final NotificationHandler notifications;
    private final SubmissionQueue<Transfer> submitted;
    private final SubmissionQueue<Runnable> calls = new SubmissionQueue<>(CALLS);
    private final AtomicLong refused = new AtomicLong();

    // the owner's
    private final List<WaitingTransfers> waiting =
            List.of(new WaitingTransfers(), new WaitingTransfers(), new WaitingTransfers());
    private final List<Transfer> aside = new ArrayList<>(); // waiting, but may not go on yet
    private final InFlight inFlight;
    private final LeavingLinks leaving;
    private final EngineTelemetry telemetry = new EngineTelemetry();
    private int waitingCount;
    private long busySinceNs; // if something is in flight
    private final AtomicLong stuck = new AtomicLong(); // one writer
    private Throwable
            thrown; // by listeners and handlers in this round, the first one; null for nothing
    private boolean inRound;
    private boolean closeAsked; // in the round
    private boolean ended;
    private AgentRunner runner;

    /**
     * Makes an engine that the caller runs: call {@link #doWork} over and over from one thread.
     *
     * @param transport owned from here on
     * @param config limits
     * @param clock time of deadlines
     * @param notifications receives what peers send, on the thread that calls {@link #doWork}
     */
    public TransferEngine(
            KvTransport transport,
            TransferConfig config,
            NanoClock clock,
            NotificationHandler notifications) {
        this.transport = Objects.requireNonNull(transport, "transport");
        this.config = Objects.requireNonNull(config, "config");
        this.clock = Objects.requireNonNull(clock, "clock");
        this.notifications = Objects.requireNonNull(notifications, "notifications");
        submitted = new SubmissionQueue<>(config.queueCapacity());
        inFlight = new InFlight(config.inFlightRequests());
        leaving = new LeavingLinks(transport, inFlight);
    }

    /**
     * Makes an engine with a thread of its own.
     *
     * @param transport owned from here on
     * @param config limits
     * @param idle what the thread does when there is nothing to do; a transport without a progress
     *     thread needs one that does not sleep long
     * @param notifications receives what peers send, on that thread
     * @param errors receives what listeners and notification handlers throw; what it throws itself
     *     is logged
     * @return running
     */
    public static TransferEngine start(
            KvTransport transport,
            TransferConfig config,
            IdleStrategy idle,
            NotificationHandler notifications,
            ErrorHandler errors) {
        Objects.requireNonNull(idle, "idle");
        Objects.requireNonNull(errors, "errors");
        final TransferEngine engine =
                new TransferEngine(transport, config, System::nanoTime, notifications);
        engine.runner = new AgentRunner(idle, errors, null, new LastingAgent(engine, errors));
        AgentRunner.startOnThread(engine.runner);
        return engine;
    }

    // -- any thread

    /**
     * Prepares own memory, registered before, for transfers.
     *
     * @param descriptors in the list's order
     * @return ends exceptionally with a {@link KvTransportException} if it cannot be
     */
    public CompletableFuture<LocalBlocks> local(Descriptors descriptors) {
        Objects.requireNonNull(descriptors, "descriptors");
        return call(t -> new LocalBlocks(this, t.prepare(null, descriptors), descriptors));
    }

    /**
     * Connects to a peer and prepares its memory; forgets the peer if that fails. One link a peer
     * at a time: the next one when {@link #unlink} of the one before has ended.
     *
     * @param metadata what the peer's transport published of itself
     * @param descriptors of its memory, in the list's order
     * @return ends exceptionally with a {@link KvTransportException} if it cannot be; where the
     *     caller ends it before, nothing is left of the link
     */
    public CompletableFuture<KvLink> link(byte[] metadata, Descriptors descriptors) {
        Objects.requireNonNull(metadata, "metadata");
        Objects.requireNonNull(descriptors, "descriptors");
        final CompletableFuture<KvLink> linked = new CompletableFuture<>();
        submit(
                () -> {
                    final KvLink link = connect(metadata, descriptors);
                    if (!linked.complete(link)) {
                        leaving.letGo(link); // no caller has it
                    }
                },
                linked);
        return linked;
    }

    private KvLink connect(byte[] metadata, Descriptors descriptors) {
        final String peer = transport.connect(metadata);
        try {
            return new KvLink(this, peer, transport.prepare(peer, descriptors), descriptors);
        } catch (KvTransportException e) {
            transport.disconnect(peer); // there is no link that would do it
            throw e;
        }
    }

    /**
     * Gives a link up. What still moves over it fails first; other links go on meanwhile.
     *
     * @param link from {@link #link}
     * @return ends when nothing of it is left; exceptionally with a {@link KvTransportException} of
     *     kind {@code FAILED} if the transport has not let go of it for 5 s: it is still linked; of
     *     kind {@code INVALID} if it is another engine's, or nothing was left of it before; with
     *     {@link IllegalStateException} as {@link #call} does
     */
    public CompletableFuture<Void> unlink(KvLink link) {
        Objects.requireNonNull(link, "link");
        final CompletableFuture<Void> left = new CompletableFuture<>();
        submit(() -> leave(link, left), left);
        return left;
    }

    /**
     * Runs something with the transport on its owner's thread: registrations, metadata, messages.
     *
     * @param what must not block
     * @param <T> its result
     * @return ends exceptionally with what it throws, or with {@link IllegalStateException} when
     *     the engine is closed or has {@value #CALLS} such calls waiting
     */
    public <T> CompletableFuture<T> call(Function<KvTransport, T> what) {
        Objects.requireNonNull(what, "what");
        final CompletableFuture<T> result = new CompletableFuture<>();
        submit(() -> result.complete(what.apply(transport)), result);
        return result;
    }

    /** Has something run on the owner's thread; the future ends with what it throws. */
    private void submit(Runnable what, CompletableFuture<?> end) {
        final Runnable call =
                () -> {
                    try {
                        what.run();
                    } catch (Throwable e) {
                        end.completeExceptionally(e);
                    }
                };
        if (!calls.offer(call)) {
            end.completeExceptionally(
                    new IllegalStateException(
                            calls.isClosed()
                                    ? "the transfer engine is closed"
                                    : CALLS + " calls wait for the transfer engine already"));
        }
    }

    /**
     * Takes a transfer. Its last stage ends here if the caller has not ended it.
     *
     * @param transfer filled, with at least one pair
     * @return false if {@code queueCapacity} transfers wait already or the engine is closed; it is
     *     counted and still the caller's
     * @throws IllegalArgumentException if it is empty
     * @throws KvTransportException of kind {@code INVALID} if its blocks or its link are another
     *     engine's
     */
    public boolean submit(Transfer transfer) {
        Objects.requireNonNull(transfer, "transfer");
        if (transfer.stages == 0 || transfer.stageEnds[transfer.stages - 1] < transfer.count) {
            transfer.endStage(null);
        }
        checkOwn(transfer.local);
        checkOwn(transfer.link);
        transfer.submitted(clock.nanoTime());
        if (!submitted.offer(transfer)) {
            transfer.refused();
            refused.incrementAndGet();
            return false;
        }
        return true;
    }

    private void checkOwn(LocalBlocks blocks) {
        if (blocks.engine() != this) {
            throw new KvTransportException(
                    Kind.INVALID,
                    "the own blocks are of another transfer engine; take those of this one's"
                            + " local()");
        }
    }

    private void checkOwn(KvLink link) {
        if (link.engine() != this) {
            throw new KvTransportException(
                    Kind.INVALID,
                    "the link to "
                            + link.peer()
                            + " is of another transfer engine; take one of this one's link()");
        }
    }

    /**
     * Takes a transfer as {@link #submit} does, for callers that would rather have a future than
     * poll or listen: it allocates one.
     *
     * @param transfer filled, with at least one pair; its listener is notified too, before the
     *     future
     * @return ends with the transfer once all bytes are there; exceptionally with a {@link
     *     java.util.concurrent.CancellationException}, a {@link
     *     java.util.concurrent.TimeoutException} (its deadline), a {@link KvTransportException}, or
     *     a {@link RejectedExecutionException} if {@link #submit} refused it. What depends on it
     *     runs on the engine's thread unless it is made with one of the {@code Async} methods. To
     *     give the transfer up, {@linkplain Transfer#cancel cancel} it and not the future
     * @throws IllegalArgumentException if it is empty
     * @throws KvTransportException as {@link #submit} does
     */
    public CompletableFuture<Transfer> move(Transfer transfer) {
        Objects.requireNonNull(transfer, "transfer");
        final TransferFuture future = new TransferFuture(transfer.listener);
        boolean taken = false;
        transfer.listener(future);
        try {
            taken = submit(transfer);
        } finally {
            if (!taken) {
                transfer.listener(future.listener());
            }
        }
        if (!taken) {
            future.completeExceptionally(
                    new RejectedExecutionException(
                            submitted.isClosed()
                                    ? "the transfer engine is closed"
                                    : "queueCapacity="
                                            + config.queueCapacity()
                                            + " transfers wait already"));
        }
        return future;
    }

    /**
     * Whether it takes nothing more.
     *
     * @return true once {@link #close} was called
     */
    public boolean isClosed() {
        return calls.isClosed();
    }

    /**
     * What transfers took.
     *
     * @return always the same
     */
    public EngineTelemetry telemetry() {
        return telemetry;
    }

    /**
     * Takes the times of a span out of the engine: those since they were last taken.
     *
     * @param span what is timed
     * @param empty takes their place and is the engine's from now on: {@link
     *     EngineTelemetry#histogram}, or one that was given before and is reset
     * @return ends with times in nanoseconds, the caller's from then on; exceptionally as {@link
     *     #call} does
     * @throws IllegalArgumentException if it is not empty or its range is too small
     */
    public CompletableFuture<Histogram> takeTimes(Span span, Histogram empty) {
        Objects.requireNonNull(span, "span");
        EngineTelemetry.check(Objects.requireNonNull(empty, "empty"));
        return call(t -> telemetry.swap(span, empty));
    }

    /**
     * Transfers that were refused because too many waited.
     *
     * @return since the start
     */
    public long refusedTransfers() {
        return refused.get();
    }

    /**
     * Requests that are over for their transfers but that the transport could not give up yet.
     *
     * @return now; above 0 for long means a peer hangs
     */
    public long stuckRequests() {
        return stuck.get();
    }

    // -- the owner's thread

    @Override
    public String roleName() {
        return "kvasir-transfer";
    }

    @Override
    public int doWork() {
        if (ended) {
            return 0;
        }
        int work = 0;
        inRound = true;
        try {
            work = round();
        } catch (Throwable e) {
            keep(e);
        }
        inRound = false;
        if (closeAsked) {
            onClose();
        }
        rethrow();
        return work;
    }

    /** Whether it is closed, and nothing is left to do. */
    boolean isEnded() {
        return ended;
    }

    private int round() {
        int work = runCalls();
        final long nowNs = clock.nanoTime();
        work += takeSubmitted();
        work += poll(nowNs);
        work += leaving.forget(nowNs);
        work += takeFromAside(nowNs);
        work += endWaiting(nowNs);
        work += post(nowNs);
        return work + transport.notifications(notifications);
    }

    /** Keeps what was thrown until the round is over. */
    @SuppressWarnings("ReferenceEquality") // nothing suppresses itself
    private void keep(Throwable fault) {
        if (thrown == null) {
            thrown = fault;
        } else if (thrown != fault) {
            thrown.addSuppressed(fault);
        }
    }

    private void rethrow() {
        final Throwable first = thrown;
        if (first != null) {
            thrown = null;
            LangUtil.rethrowUnchecked(first);
        }
    }

    private int runCalls() {
        int run = 0;
        for (Runnable call = calls.poll(); call != null; call = calls.poll()) {
            call.run();
            run++;
        }
        return run;
    }

    private int takeSubmitted() {
        int taken = 0;
        while (waitingCount < config.queueCapacity()) {
            final Transfer transfer = submitted.poll();
            if (transfer == null) {
                break;
            }
            queue(transfer.priority).addLast(transfer);
            waitingCount++;
            taken++;
        }
        return taken;
    }

    private WaitingTransfers queue(Priority priority) {
        return switch (priority) {
            case HIGH -> waiting.get(0);
            case NORMAL -> waiting.get(1);
            case LOW -> waiting.get(2);
        };
    }

    /** Polls every posted request. */
    private int poll(long nowNs) {
        if (inFlight.count() > 0) {
            telemetry.busy(nowNs - busySinceNs);
            busySinceNs = nowNs;
        }
        int work = 0;
        for (int i = inFlight.count() - 1; i >= 0; i--) {
            final Transfer transfer = inFlight.transfer(i);
            stopIfDue(transfer, nowNs);
            if (inFlight.isEnded(i)) {
                work += release(i, nowNs);
                continue;
            }
            final Progress progress = transport.status(inFlight.handle(i));
            if (progress != Progress.RUNNING || transfer.stopping) {
                finish(i, progress, nowNs);
                work++;
            }
        }
        return work;
    }

    /** Of a transfer that is cancelled or late, nothing more is posted. */
    private static void stopIfDue(Transfer transfer, long nowNs) {
        if (transfer.stopping) {
            return;
        }
        if (transfer.isCancelled()) {
            transfer.stop(State.CANCELLED, "cancelled");
        } else if (transfer.deadlineNs != Transfer.NEVER && nowNs - transfer.deadlineNs >= 0) {
            transfer.stop(State.EXPIRED, "its deadline passed");
        } else if (!transfer.link.isUp()) {
            transfer.stop(State.FAILED, transfer.link.lostBecause());
        }
    }

    /** A request is done, has failed, or is to be given up. */
    private void finish(int i, Progress progress, long nowNs) {
        final Transfer transfer = inFlight.transfer(i);
        if (progress == Progress.FAILED) {
            final String why = transport.failure(inFlight.handle(i));
            transfer.stop(State.FAILED, why);
            transfer.link.lose(why);
        } else if (progress == Progress.DONE) {
            // not the time of the round, which was read before the end was seen
            final long tookNs = clock.nanoTime() - inFlight.startNs(i);
            transfer.link.moved(inFlight.descriptors(i), inFlight.bytes(i), tookNs);
            telemetry.moved(transfer.operation, inFlight.descriptors(i), inFlight.bytes(i));
            telemetry.took(Span.REQUEST, tookNs);
        }
        inFlight.markEnded(i);
        stuck.lazySet(stuck.getPlain() + 1);
        release(i, nowNs);
    }

    /** Gives a request back; if that fails, it stays in flight and is tried again. */
    private int release(int i, long nowNs) {
        if (!transport.release(inFlight.handle(i))) {
            return 0;
        }
        stuck.lazySet(stuck.getPlain() - 1);
        final Transfer transfer = inFlight.transfer(i);
        transfer.inFlight--;
        transfer.stageInFlight[inFlight.stage(i)]--;
        inFlight.remove(i);
        completeStages(transfer, nowNs);
        endIfOver(transfer, nowNs);
        return 1;
    }

    /** Publishes stages that are complete now. */
    private void completeStages(Transfer transfer, long nowNs) {
        while (transfer.isNextStageComplete()) {
            telemetry.took(Span.STAGE, nowNs - transfer.stageStartNs[transfer.completedStages()]);
            try {
                transfer.completeStage();
            } catch (Throwable e) {
                keep(e);
            }
        }
    }

    private void endIfOver(Transfer transfer, long nowNs) {
        if (transfer.isOver()) {
            transfer.link.ended(transfer.ending == State.DONE);
            telemetry.ended(transfer.ending);
            if (transfer.ending == State.DONE) {
                telemetry.took(Span.TRANSFER, nowNs - transfer.submittedNs);
            }
            try {
                transfer.end();
            } catch (Throwable e) {
                keep(e);
            }
        }
    }

    /** Puts transfers that may go on first in their queues, in the order they came. */
    private int takeFromAside(long nowNs) {
        int taken = 0;
        for (int i = aside.size() - 1; i >= 0; i--) {
            final Transfer transfer = aside.get(i);
            stopIfDue(transfer, nowNs);
            if (transfer.stopping || transfer.mayGoOn()) {
                aside.remove(i);
                queue(transfer.priority).addFirst(transfer);
                taken++;
            }
        }
        return taken;
    }

    /** Ends those of the next few that wait that are to stop, whatever waits before them. */
    private int endWaiting(long nowNs) {
        int ended = 0;
        for (int p = 0; p < waiting.size(); p++) {
            final WaitingTransfers queue = waiting.get(p);
            for (int looks = Math.min(queue.size(), LOOKS); looks > 0; looks--) {
                final Transfer transfer = queue.pollNext();
                stopIfDue(transfer, nowNs);
                if (transfer.stopping) {
                    leave(transfer, nowNs);
                    ended++;
                } else {
                    queue.pass(transfer);
                }
            }
        }
        return ended;
    }

    /** It waits no more: all of it is posted, or nothing more will be. */
    private void leave(Transfer transfer, long nowNs) {
        transfer.queued = false;
        waitingCount--;
        endIfOver(transfer, nowNs);
    }

    /** Posts what the limits allow, highest priority first. */
    private int post(long nowNs) {
        for (int p = 0; p < waiting.size(); p++) {
            final WaitingTransfers queue = waiting.get(p);
            final Transfer transfer = next(queue, nowNs);
            if (transfer != null) {
                if (!transfer.stopping && !postNext(transfer)) {
                    return 0; // what is after it waits for the same room
                }
                if (transfer.stopping || transfer.isAllPosted()) {
                    queue.pollFirst();
                    leave(transfer, nowNs);
                }
                return 1; // others may have come meanwhile: a post can take long
            }
        }
        return 0;
    }

    /** First of a queue that may go on or is to stop; those that may not stand aside. */
    private Transfer next(WaitingTransfers queue, long nowNs) {
        for (Transfer first = queue.peekFirst(); first != null; first = queue.peekFirst()) {
            stopIfDue(first, nowNs);
            if (first.stopping || first.mayGoOn()) {
                return first;
            }
            aside.add(queue.pollFirst());
        }
        return null;
    }

    /** Posts the next request of a transfer, if it must not wait for itself; false without room. */
    private boolean postNext(Transfer transfer) {
        final int stage = transfer.stagePosted;
        final int end = transfer.stageEnds[stage];
        final Descriptors descriptors = transfer.local.descriptors();
        int count = 0;
        long bytes = 0;
        for (int i = transfer.posted; i < end && count < config.requestDescriptors(); i++) {
            final long length = descriptors.length(transfer.localIndices[i]);
            if (count > 0 && bytes + length > config.requestBytes()) {
                break;
            }
            bytes += length;
            count++;
        }
        final boolean isLast = transfer.posted + count == end;
        final byte[] notification = isLast ? transfer.notifications[stage] : null;
        if (notification != null && transfer.inFlight > 0) {
            transfer.awaitsItself = true;
            return true; // and stands aside
        }
        if (inFlight.isFull()
                || (inFlight.count() > 0 && inFlight.bytes() + bytes > config.inFlightBytes())) {
            return false;
        }
        transfer.awaitsItself = false;
        try {
            post(transfer, stage, count, bytes, notification);
        } catch (KvTransportException e) {
            transfer.stop(State.FAILED, e.getMessage());
            if (e.kind() != Kind.INVALID) { // which is the transfer's fault
                transfer.link.lose(e.getMessage());
            }
            return true;
        }
        transfer.posted += count;
        transfer.stagePosted += isLast ? 1 : 0;
        return true;
    }

    private void post(Transfer transfer, int stage, int count, long bytes, byte[] notification) {
        final long startNs = clock.nanoTime();
        begin(transfer, stage, startNs);
        final long handle =
                transport.request(
                        transfer.operation,
                        transfer.local.list(),
                        transfer.localIndices,
                        transfer.link.list(),
                        transfer.remoteIndices,
                        transfer.posted,
                        count,
                        notification);
        if (inFlight.count() == 0) {
            busySinceNs = startNs;
        }
        inFlight.add(handle, transfer, stage, count, bytes, startNs);
        transfer.inFlight++;
        transfer.stageInFlight[stage]++;
        transport.post(handle); // its end is seen by the next poll
        telemetry.took(Span.POSTING, clock.nanoTime() - startNs);
    }

    /** Records the beginning of a transfer and of a stage. */
    private void begin(Transfer transfer, int stage, long nowNs) {
        if (transfer.state() == State.WAITING) {
            transfer.running();
            telemetry.took(Span.WAITING, nowNs - transfer.submittedNs);
        }
        if (transfer.posted == transfer.stageFirst(stage)) {
            transfer.stageStartNs[stage] = nowNs;
        }
    }

    /** Fails everything of a link, which is forgotten here if the transport lets go of it. */
    private void leave(KvLink link, CompletableFuture<Void> left) {
        checkOwn(link);
        if (link.isForgotten()) {
            throw new KvTransportException(
                    Kind.INVALID, "the link to " + link.peer() + " was given up before");
        }
        link.lose("given up");
        final long nowNs = clock.nanoTime();
        poll(nowNs);
        leaving.add(link, nowNs + RELEASE_PATIENCE_NS, left);
        leaving.forget(nowNs);
    }

    /**
     * Cancels what is left, waits a bounded time until the transport has given it up, and closes
     * the transport. A transfer whose requests it has not given up by then stays {@link
     * State#RUNNING}. The last thing of a running engine; called by its thread. Throws what
     * listeners have thrown, when all is closed.
     */
    @Override
    public void onClose() {
        if (ended) {
            return;
        }
        ended = true;
        try {
            endAll();
        } catch (Throwable e) {
            keep(e);
        } finally {
            transport.close();
        }
        rethrow();
    }

    private void endAll() {
        submitted.close();
        calls.close();
        for (WaitingTransfers queue : waiting) {
            for (Transfer left = queue.pollFirst(); left != null; left = queue.pollFirst()) {
                drop(left);
            }
        }
        aside.forEach(this::drop);
        aside.clear();
        waitingCount = 0;
        for (Transfer late = submitted.drain(); late != null; late = submitted.drain()) {
            drop(late);
        }
        for (int i = 0; i < inFlight.count(); i++) {
            inFlight.transfer(i).cancel();
        }
        final long deadline = clock.nanoTime() + RELEASE_PATIENCE_NS;
        do {
            poll(clock.nanoTime());
        } while (inFlight.count() > 0 && clock.nanoTime() - deadline < 0);
        for (Runnable call = calls.drain(); call != null; call = calls.drain()) {
            call.run();
        }
        leaving.close();
    }

    /** Of a transfer that waits, nothing more is posted. */
    private void drop(Transfer transfer) {
        transfer.stop(State.CANCELLED, "the transfer engine was closed");
        transfer.queued = false;
        endIfOver(transfer, clock.nanoTime());
    }

    /**
     * Ends it: what has not ended is cancelled, what is submitted later is refused. Blocks until
     * the engine's thread is through. What runs on that thread, such as a listener, may call it
     * too: then the engine ends when its round is over, after this has returned. Idempotent.
     */
    @Override
    public void close() {
        submitted.close();
        calls.close();
        if (runner != null && !Thread.currentThread().equals(runner.thread())) {
            runner.close();
        } else if (runner != null || inRound) {
            closeAsked = true;
        } else {
            onClose();
        }
    }
}
