package io.kvasir.router;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * A booking: the load of one request on one worker, from {@link KvRouter#reserve} to {@link
 * #close}. Any thread may call it; late and repeated calls do nothing.
 */
public final class Lease implements AutoCloseable {
    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(Lease.class, "state", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private static final int PREFILL = 0;
    private static final int DECODE = 1;
    private static final int CLOSED = 2;

    private final KvRouter router;
    private final Worker worker;
    private final long requestId;
    private final int tailTokens;
    private int outputBlocks;

    @SuppressWarnings("unused") // through STATE
    private volatile int state;

    Lease(KvRouter router, Worker worker, long requestId, int promptTokens, int blockSize) {
        this.router = router;
        this.worker = worker;
        this.requestId = requestId;
        this.tailTokens = promptTokens % blockSize;
    }

    /**
     * The worker that the request is booked on.
     *
     * @return never null
     */
    public Worker worker() {
        return worker;
    }

    /**
     * The booking's number, unique in this router.
     *
     * @return for logs
     */
    public long requestId() {
        return requestId;
    }

    /** The first output token is there: the prompt no longer counts as work to prefill. */
    public void prefillComplete() {
        if (STATE.compareAndSet(this, PREFILL, DECODE)) {
            router.prefillCompleted(requestId);
        }
    }

    /**
     * Reports generated tokens; each block that they fill becomes an active block where the router
     * tracks output blocks. One thread at a time.
     *
     * @param total tokens generated so far, not since the last call
     */
    public void outputTokens(int total) {
        final int filled = (tailTokens + total) / router.settings().blockSize();
        while (outputBlocks < filled && (int) STATE.getAcquire(this) != CLOSED) {
            outputBlocks++;
            router.outputBlock(requestId);
        }
    }

    /** Releases the booking; implies {@link #prefillComplete}. */
    @Override
    public void close() {
        if ((int) STATE.getAndSet(this, CLOSED) != CLOSED) {
            router.release(requestId);
        }
    }
}
