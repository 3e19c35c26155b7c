package io.kvasir.nixl.vllm;

import io.kvasir.protocol.handoff.KvTransferParams;
import io.kvasir.protocol.handoff.RemoteBlocks;

import java.util.List;

/**
 * The blocks that a prefill server holds for one finished prefill, seen from the side that fetches
 * them: until when, when to say that they are still wanted, and what to send. Has no clock: every
 * time is {@link System#nanoTime}'s, passed in. Not thread-safe: of the transport's owner.
 *
 * <pre>
 *   HELD ---- end of the lease, less the margin ----&gt; EXPIRED
 *     \------ {@link #released} ------------------------&gt; RELEASED
 * </pre>
 *
 * <p>The end is an estimate: where the server states no deadline, the lease is counted from the
 * arrival of the prefill's answer, a little after the server began to count; heartbeats are not
 * acknowledged. {@link LeaseTerms#marginNs} covers both.
 */
public final class PrefillLease {
    /** What can be done with the blocks. */
    public enum State {
        /** The server holds them; they can be read. */
        HELD,
        /** They were given back. */
        RELEASED,
        /** The server may have given them to another prompt. */
        EXPIRED
    }

    private final String requestId;
    private final String engineId;
    private final RemoteBlocks blocks;
    private final LeaseTerms terms;
    private final int consumers;
    private final boolean extendable;
    private long expiresAtNs;
    private long nextHeartbeatNs;
    private boolean expired;
    private boolean released;

    private PrefillLease(
            String requestId,
            String engineId,
            RemoteBlocks blocks,
            LeaseTerms terms,
            int consumers,
            long expiresAtNs,
            long receivedNs) {
        this.requestId = requestId;
        this.engineId = engineId;
        this.blocks = blocks;
        this.terms = terms;
        this.consumers = consumers;
        this.extendable = !requestId.isEmpty() && requestId.indexOf(',') < 0;
        this.expiresAtNs = expiresAtNs;
        this.nextHeartbeatNs = receivedNs + terms.heartbeatNs();
    }

    /**
     * Starts a lease.
     *
     * @param params the prefill's answer
     * @param engine the engine that gave it
     * @param consumers ranks here that read each of its ranks, at least 1
     * @param terms the server's terms
     * @param receivedNs when the answer arrived
     * @return the lease
     * @throws VllmPeerException of kind {@code MALFORMED} if the answer lacks a field, {@code
     *     UNSUPPORTED} if the engine is pipelined or pushes, or the request's identifier fits in no
     *     message, {@code OTHER_ENGINE} if another engine gave it, or one of another number of
     *     ranks
     */
    public static PrefillLease of(
            KvTransferParams params,
            VllmEngine engine,
            int consumers,
            LeaseTerms terms,
            long receivedNs) {
        HandoffFields.requirePlainPull(params);
        final String engineId = HandoffFields.engineId(params);
        final String requestId = HandoffFields.requestId(params);
        final int tensorSize = HandoffFields.tensorSize(params);
        if (!engineId.equals(engine.engineId()) || tensorSize != engine.tensorSize()) {
            throw new VllmPeerException(
                    VllmPeerException.Kind.OTHER_ENGINE,
                    "request "
                            + requestId
                            + " was prefilled by engine "
                            + engineId
                            + " of tp_size="
                            + tensorSize
                            + ", not by "
                            + engine.engineId()
                            + " of "
                            + engine.tensorSize());
        }
        final RemoteBlocks blocks = HandoffFields.blocks(params);
        final var stated = params.remoteBlocksExpiryTime();
        final long expiresAtNs =
                stated.isPresent()
                        ? Math.round(stated.getAsDouble() * 1e9)
                                - engine.ranks().getFirst().clockOffsetNs()
                        : receivedNs + terms.leaseNs();
        return new PrefillLease(
                requestId, engineId, blocks, terms, consumers, expiresAtNs, receivedNs);
    }

    /**
     * The server's name of the request.
     *
     * @return never null
     */
    public String requestId() {
        return requestId;
    }

    /**
     * The engine that holds the blocks.
     *
     * @return its identifier
     */
    public String engineId() {
        return engineId;
    }

    /**
     * The blocks.
     *
     * @return block numbers per KV cache group
     */
    public RemoteBlocks blocks() {
        return blocks;
    }

    /**
     * When the server gives the blocks up.
     *
     * @return {@link System#nanoTime} of here
     */
    public long expiresAtNs() {
        return expiresAtNs;
    }

    /**
     * What can be done with the blocks. A lease that was once seen expired stays so.
     *
     * @param nowNs current time
     * @return the state
     */
    public State state(long nowNs) {
        if (released) {
            return State.RELEASED;
        }
        expired |= nowNs - (expiresAtNs - terms.marginNs()) >= 0;
        return expired ? State.EXPIRED : State.HELD;
    }

    /**
     * Refuses blocks that may be another prompt's by now.
     *
     * @param nowNs current time
     * @throws VllmPeerException of kind {@code EXPIRED} or {@code RELEASED}
     */
    public void requireHeld(long nowNs) {
        switch (state(nowNs)) {
            case HELD -> {}
            case RELEASED ->
                    throw new VllmPeerException(
                            VllmPeerException.Kind.RELEASED,
                            "blocks of request " + requestId + " were given back already");
            case EXPIRED ->
                    throw new VllmPeerException(
                            VllmPeerException.Kind.EXPIRED,
                            "blocks of request "
                                    + requestId
                                    + " at engine "
                                    + engineId
                                    + " may be reused: the lease of "
                                    + terms.leaseSeconds()
                                    + " s ends "
                                    + (expiresAtNs - nowNs) / 1_000_000
                                    + " ms from now, with a margin of "
                                    + terms.marginNs() / 1_000_000
                                    + " ms; send heartbeats sooner or raise the server's"
                                    + " kv_lease_duration");
        }
    }

    /**
     * Refuses the bytes of a read that ended when the blocks may have been another prompt's: a read
     * can take longer than expected, and heartbeats can be missed meanwhile. Half of the margin is
     * left for what the end's estimate is wrong by.
     *
     * @param endedNs when the read was seen to have ended
     * @throws VllmPeerException of kind {@code EXPIRED}; the lease is expired then
     */
    public void requireReadInTime(long endedNs) {
        final long lateNs = endedNs - (expiresAtNs - terms.marginNs() / 2);
        if (lateNs < 0) {
            return;
        }
        expired = true;
        throw new VllmPeerException(
                VllmPeerException.Kind.EXPIRED,
                "the read of request "
                        + requestId
                        + " ended "
                        + lateNs / 1_000_000
                        + " ms too late for its lease: what was read may be another prompt's;"
                        + " compute it anew");
    }

    /**
     * Whether heartbeats can name this request: a comma in its identifier keeps them from it.
     *
     * @return false if the lease ends when it ends
     */
    public boolean extendable() {
        return extendable;
    }

    /**
     * When the next heartbeat is due.
     *
     * @return time; of no meaning for a lease that is not held or not {@link #extendable}
     */
    public long nextHeartbeatNs() {
        return nextHeartbeatNs;
    }

    /**
     * Whether a heartbeat is due.
     *
     * @param nowNs current time
     * @return false also for a lease that no heartbeat can help
     */
    public boolean heartbeatDue(long nowNs) {
        return extendable && state(nowNs) == State.HELD && nowNs - nextHeartbeatNs >= 0;
    }

    /**
     * What to send to extend this lease alone; one message may name many leases.
     *
     * @return a heartbeat
     * @throws IllegalArgumentException if it is not {@link #extendable}
     */
    public VllmNotification.Heartbeat heartbeat() {
        return new VllmNotification.Heartbeat(List.of(requestId));
    }

    /**
     * Records that a heartbeat was sent: the lease now ends no earlier than two thirds of a lease
     * from then.
     *
     * @param sentNs when
     * @throws VllmPeerException of kind {@code EXPIRED} or {@code RELEASED} if it came too late
     */
    public void heartbeatSent(long sentNs) {
        requireHeld(sentNs);
        final long extended = sentNs + terms.extensionNs();
        if (extended - expiresAtNs > 0) {
            expiresAtNs = extended;
        }
        nextHeartbeatNs = sentNs + terms.heartbeatNs();
    }

    /**
     * What makes a rank of the server free the blocks, once each rank here that reads it has sent
     * it: with a read, or alone if no read follows.
     *
     * @return the completion of one consumer
     */
    public VllmNotification.Completion completion() {
        return new VllmNotification.Completion(requestId, consumers);
    }

    /** Records that the blocks were given back, by a read's notification or by one alone. */
    public void released() {
        released = true;
    }

    /** Returns request, engine and number of blocks. */
    @Override
    public String toString() {
        return "lease of " + blocks.count() + " blocks of " + requestId + " at " + engineId;
    }
}
