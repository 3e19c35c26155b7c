package io.kvasir.nixl.loopback;

import static io.kvasir.nixl.loopback.InboxDescriptor.CLOSED_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.DATA_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.HEAD_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.INSTANCE_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.LANES_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.LANE_BYTES_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.LEFT;
import static io.kvasir.nixl.loopback.InboxDescriptor.MAGIC;
import static io.kvasir.nixl.loopback.InboxDescriptor.NAME_LENGTH_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.NAME_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.OPEN;
import static io.kvasir.nixl.loopback.InboxDescriptor.OWNER_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.PADDING;
import static io.kvasir.nixl.loopback.InboxDescriptor.PID_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.POLLED_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.RECORD_HEADER;
import static io.kvasir.nixl.loopback.InboxDescriptor.SENDER_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.START_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.STATE_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.TAIL_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.USED_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.fileLength;
import static io.kvasir.nixl.loopback.InboxDescriptor.laneOffset;
import static io.kvasir.nixl.loopback.InboxDescriptor.recordLength;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * A sender's end of a peer's inbox: one lane of it. One thread. What the receiver writes is not
 * believed: it can only make the lane look full.
 */
final class InboxSender {
    private final MemorySegment file;
    private final MemorySegment lane;
    private final long receiver;
    private final int capacity;
    private long tail;
    private long headSeen;

    private InboxSender(MemorySegment file, MemorySegment lane, long receiver, int capacity) {
        this.file = file;
        this.lane = lane;
        this.receiver = receiver;
        this.capacity = capacity;
        this.tail = OrderedMemory.getLong(lane, TAIL_OFFSET);
        this.headSeen = tail - capacity; // as if full: the first message checks
    }

    /**
     * Maps a peer's inbox and takes a lane of it.
     *
     * @param arena of the mapping
     * @param sender id of the sending end
     * @throws KvTransportException {@code PEER_LOST} if it is closed, {@code BAD_METADATA} if it is
     *     not that peer's, {@code CAPACITY} if all lanes are taken
     */
    static InboxSender open(SharedFolder folder, LoopbackId peer, LoopbackId sender, Arena arena) {
        final MemorySegment file = folder.map(peer.inboxFile(), arena);
        final long lanes = OrderedMemory.getLong(file, LANES_OFFSET);
        final long laneBytes = OrderedMemory.getLong(file, LANE_BYTES_OFFSET);
        final boolean fits =
                OrderedMemory.getLongAcquire(file, 0) == MAGIC
                        && OrderedMemory.getLong(file, INSTANCE_OFFSET) == peer.instance()
                        && OrderedMemory.getLong(file, PID_OFFSET) == peer.pid()
                        && lanes > 0
                        && lanes <= Integer.MAX_VALUE
                        && laneBytes >= recordLength(KvTransport.MAX_MESSAGE)
                        && laneBytes <= 1 << 30
                        && Long.bitCount(laneBytes) == 1
                        && file.byteSize() == fileLength((int) lanes, (int) laneBytes);
        if (!fits) {
            throw new KvTransportException(
                    Kind.BAD_METADATA, peer.inboxFile() + " is not the inbox of peer " + peer);
        }
        if (OrderedMemory.getLongAcquire(file, CLOSED_OFFSET) != 0) {
            throw new KvTransportException(Kind.PEER_LOST, "peer " + peer + " is gone: closed");
        }
        for (boolean own : new boolean[] {true, false}) { // one before its own may be free
            for (int i = 0; i < (int) lanes; i++) {
                final MemorySegment lane =
                        file.asSlice(laneOffset(i, (int) laneBytes), DATA_OFFSET + laneBytes);
                if (own ? reopen(lane, sender) : take(file, lane, i, sender)) {
                    return new InboxSender(file, lane, peer.instance(), (int) laneBytes);
                }
            }
        }
        throw new KvTransportException(
                Kind.CAPACITY,
                "peer "
                        + peer
                        + " has room for "
                        + lanes
                        + " senders, all taken; raise its LoopbackConfig.maxPeers");
    }

    /**
     * Takes its own lane again while its last messages still wait, so that the order of all is
     * kept.
     */
    private static boolean reopen(MemorySegment lane, LoopbackId sender) {
        final boolean own =
                OrderedMemory.getLongAcquire(lane, OWNER_OFFSET) == sender.pid()
                        && OrderedMemory.getLong(lane, SENDER_OFFSET) == sender.instance()
                        && OrderedMemory.compareAndSetInt(lane, STATE_OFFSET, LEFT, OPEN);
        if (own && OrderedMemory.getLong(lane, SENDER_OFFSET) != sender.instance()) {
            OrderedMemory.setIntRelease(lane, STATE_OFFSET, LEFT); // freed and taken in between
            return false;
        }
        return own;
    }

    private static boolean take(
            MemorySegment file, MemorySegment lane, int offset, LoopbackId sender) {
        if (!OrderedMemory.compareAndSetLong(lane, OWNER_OFFSET, 0, sender.pid())) {
            return false;
        }
        final byte[] name = sender.name().getBytes(StandardCharsets.UTF_8);
        OrderedMemory.setLong(lane, START_OFFSET, sender.startMs());
        OrderedMemory.setLong(lane, SENDER_OFFSET, sender.instance());
        OrderedMemory.setInt(lane, NAME_LENGTH_OFFSET, name.length);
        MemorySegment.copy(name, 0, lane, ValueLayout.JAVA_BYTE, NAME_OFFSET, name.length);
        // release: an owner that reads OPEN with acquire sees the start, the instance and the name
        OrderedMemory.setIntRelease(lane, STATE_OFFSET, OPEN);
        long used = OrderedMemory.getLongAcquire(file, USED_OFFSET);
        while (used <= offset
                && !OrderedMemory.compareAndSetLong(file, USED_OFFSET, used, offset + 1L)) {
            used = OrderedMemory.getLongAcquire(file, USED_OFFSET);
        }
        return true;
    }

    /**
     * Puts a message in, visible with everything that this thread has written before.
     *
     * @return false if there is no room
     */
    boolean offer(byte[] message, int length) {
        final int record = recordLength(length);
        final int offset = (int) (tail & (capacity - 1));
        final int padding = record > capacity - offset ? capacity - offset : 0;
        final long end = tail + padding + record;
        if (end - headSeen > capacity) {
            // acquire: pairs with the owner's release of head, so it has read what is written over
            headSeen = OrderedMemory.getLongAcquire(lane, HEAD_OFFSET);
            if (end - headSeen > capacity) {
                return false;
            }
        }
        if (padding > 0) {
            OrderedMemory.setInt(lane, DATA_OFFSET + offset, PADDING);
        }
        final long at = DATA_OFFSET + ((tail + padding) & (capacity - 1));
        OrderedMemory.setInt(lane, at, length);
        MemorySegment.copy(message, 0, lane, ValueLayout.JAVA_BYTE, at + RECORD_HEADER, length);
        tail = end;
        // release: an owner that reads this tail with acquire sees padding, length and message, and
        // the blocks that were copied before; a sender that dies before it has published nothing
        OrderedMemory.setLongRelease(lane, TAIL_OFFSET, end);
        return true;
    }

    /** Whether the receiver takes nothing from here any more: closed, another one, or refused. */
    boolean isClosed() {
        return OrderedMemory.getLongAcquire(file, CLOSED_OFFSET) != 0
                || OrderedMemory.getLongOpaque(file, INSTANCE_OFFSET) != receiver
                || OrderedMemory.getIntAcquire(lane, STATE_OFFSET) != OPEN;
    }

    /** Bytes of messages that may wait. */
    int capacity() {
        return capacity;
    }

    /** How long ago the receiver last took messages, in milliseconds. */
    long idleMs() {
        return (System.nanoTime() - OrderedMemory.getLongOpaque(file, POLLED_OFFSET)) / 1_000_000;
    }

    /** Leaves; the receiver frees the lane when it has taken the last message. */
    void leave() {
        OrderedMemory.compareAndSetInt(lane, STATE_OFFSET, OPEN, LEFT);
    }
}
