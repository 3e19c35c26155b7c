package io.kvasir.nixl.loopback;

import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.TransferTelemetry;

import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/**
 * A request's copies and how far they are. Reused for many requests, so that none allocates once
 * the arrays have grown. One thread.
 */
final class CopyRequest {
    /** Life of a request. */
    enum State {
        /** Made, or done before and not yet posted again. */
        READY,
        RUNNING,
        DONE,
        FAILED
    }

    private static final int FIRST_COPIES = 64;

    private DescriptorList local;
    private DescriptorList remote;
    private MemorySegment[] sources = new MemorySegment[FIRST_COPIES];
    private MemorySegment[] targets = new MemorySegment[FIRST_COPIES];
    private long[] sourceOffsets = new long[FIRST_COPIES];
    private long[] targetOffsets = new long[FIRST_COPIES];
    private long[] lengths = new long[FIRST_COPIES];
    private int copies;
    private long bytes;
    private byte[] notification = new byte[0];
    private int notificationLength;

    private State state;
    private int copy;
    private long copied;
    private long postedNs;
    private long copiedNs;
    private long endedNs;
    private long postNs;
    private String failure;

    /** Begins a request. */
    void start(DescriptorList local, DescriptorList remote, byte[] message) {
        this.local = local;
        this.remote = remote;
        copies = 0;
        bytes = 0;
        state = State.READY;
        failure = null;
        notificationLength = message == null ? -1 : message.length;
        if (message != null) {
            if (notification.length < message.length) {
                notification = new byte[message.length];
            }
            System.arraycopy(message, 0, notification, 0, message.length);
        }
        local.addRequests(1);
        remote.addRequests(1);
    }

    /** Adds a descriptor; joins it to the one before where both sides go on where that ends. */
    void add(Operation operation, int localIndex, int remoteIndex) {
        final boolean read = operation == Operation.READ;
        final DescriptorList from = read ? remote : local;
        final DescriptorList to = read ? local : remote;
        final int fromIndex = read ? remoteIndex : localIndex;
        final int toIndex = read ? localIndex : remoteIndex;
        add(
                from.memory(fromIndex),
                from.offset(fromIndex),
                to.memory(toIndex),
                to.offset(toIndex),
                from.length(fromIndex));
    }

    private void add(
            MemorySegment source,
            long sourceOffset,
            MemorySegment target,
            long targetOffset,
            long length) {
        bytes += length;
        final int last = copies - 1;
        if (last >= 0
                && sources[last].equals(source)
                && targets[last].equals(target)
                && sourceOffsets[last] + lengths[last] == sourceOffset
                && targetOffsets[last] + lengths[last] == targetOffset) {
            lengths[last] += length;
            return;
        }
        if (copies == lengths.length) {
            grow();
        }
        sources[copies] = source;
        targets[copies] = target;
        sourceOffsets[copies] = sourceOffset;
        targetOffsets[copies] = targetOffset;
        lengths[copies++] = length;
    }

    private void grow() {
        final int more = 2 * lengths.length;
        sources = Arrays.copyOf(sources, more);
        targets = Arrays.copyOf(targets, more);
        sourceOffsets = Arrays.copyOf(sourceOffsets, more);
        targetOffsets = Arrays.copyOf(targetOffsets, more);
        lengths = Arrays.copyOf(lengths, more);
    }

    /** Starts from the first byte. */
    void post(long nowNs) {
        state = State.RUNNING;
        copy = 0;
        copied = 0;
        postedNs = nowNs;
        postNs = 0;
    }

    /**
     * Copies on.
     *
     * @param budget bytes at most
     * @return whether all bytes are where they belong
     */
    boolean copy(long budget) {
        long left = budget;
        while (copy < copies && left > 0) {
            final long length = Math.min(left, lengths[copy] - copied);
            MemorySegment.copy(
                    sources[copy],
                    sourceOffsets[copy] + copied,
                    targets[copy],
                    targetOffsets[copy] + copied,
                    length);
            left -= length;
            copied += length;
            if (copied == lengths[copy]) {
                copy++;
                copied = 0;
            }
        }
        return copy == copies;
    }

    boolean isCopied() {
        return copy == copies;
    }

    /** Records when the last byte arrived. */
    void copied(long nowNs) {
        copiedNs = nowNs;
    }

    long copiedNs() {
        return copiedNs;
    }

    void done(long nowNs) {
        state = State.DONE;
        endedNs = nowNs;
    }

    void failed(String why) {
        state = State.FAILED;
        failure = why;
    }

    /** Records how long the post took; one that was done in it took no longer than the transfer. */
    void posted(long nowNs) {
        postNs = (state == State.DONE ? endedNs : nowNs) - postedNs;
    }

    /** Gives it back to be reused; holds nothing of the caller's any more. */
    void end() {
        local.addRequests(-1);
        remote.addRequests(-1);
        Arrays.fill(sources, 0, copies, null);
        Arrays.fill(targets, 0, copies, null);
        local = null;
        remote = null;
    }

    LoopbackPeer peer() {
        return remote.peer();
    }

    State state() {
        return state;
    }

    String failure() {
        return failure;
    }

    /** Length of {@link #notification}, -1 if nothing is to be sent. */
    int notificationLength() {
        return notificationLength;
    }

    /** The message; longer than it, where an earlier one was. */
    byte[] notification() {
        return notification;
    }

    void measure(TransferTelemetry out) {
        out.postNs = postNs;
        out.transferNs = endedNs - postedNs;
        out.bytes = bytes;
        out.descriptors = copies;
    }
}
