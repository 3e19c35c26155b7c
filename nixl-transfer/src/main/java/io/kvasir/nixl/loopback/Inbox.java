package io.kvasir.nixl.loopback;

import static io.kvasir.nixl.loopback.InboxDescriptor.BROKEN;
import static io.kvasir.nixl.loopback.InboxDescriptor.CLOSED_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.DATA_OFFSET;
import static io.kvasir.nixl.loopback.InboxDescriptor.FREE;
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
import io.kvasir.nixl.transport.KvTransport.NotificationHandler;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * The receiver's end of an inbox: its file, and what is known of the sender of each lane. One
 * thread. What senders write is checked before it is used; a lane that makes no sense is shut.
 */
final class Inbox implements AutoCloseable {
    private final SharedFolder folder;
    private final String name;
    private final Arena arena;
    private final MemorySegment file;
    private final long livenessNs;
    private final int laneBytes;
    private final Lane[] lanes;
    private long sweptAtNs;

    /** What the receiver knows of a lane. */
    private static final class Lane {
        private final MemorySegment memory;
        private final MemorySegment data;
        private long instance;
        private String sender;
        private ProcessHandle process;

        Lane(MemorySegment memory) {
            this.memory = memory;
            this.data = memory.asSlice(DATA_OFFSET);
        }

        int state() {
            return OrderedMemory.getIntAcquire(memory, STATE_OFFSET);
        }

        boolean isEmpty() {
            // acquire: pairs with the sender's release of tail; head is this thread's own
            return OrderedMemory.getLongAcquire(memory, TAIL_OFFSET)
                    == OrderedMemory.getLong(memory, HEAD_OFFSET);
        }

        /** Reads the sender's id, if that is not known yet; allocates once for each sender. */
        void know() {
            final long owner = OrderedMemory.getLongAcquire(memory, OWNER_OFFSET);
            final long now = OrderedMemory.getLong(memory, SENDER_OFFSET);
            if (sender != null && now == instance) {
                return;
            }
            final int length = OrderedMemory.getInt(memory, NAME_LENGTH_OFFSET);
            final byte[] bytes = new byte[Math.clamp(length, 0, LoopbackId.MAX_NAME)];
            MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, NAME_OFFSET, bytes, 0, bytes.length);
            sender = new String(bytes, StandardCharsets.UTF_8);
            instance = now;
            process = HostProcess.find(owner, OrderedMemory.getLong(memory, START_OFFSET));
        }

        /** Whether the sender cannot come back: its process is gone. */
        boolean isOrphaned() {
            final long owner = OrderedMemory.getLongAcquire(memory, OWNER_OFFSET);
            if (owner == 0 || owner == HostProcess.OWN_PID) {
                return false;
            }
            if (state() == FREE) { // died, or is just now writing its name
                return HostProcess.find(owner, 0) == null;
            }
            know();
            return process == null || !process.isAlive();
        }

        /** Frees an empty lane: any sender may take it. */
        void free() {
            sender = null;
            process = null;
            OrderedMemory.setIntRelease(memory, STATE_OFFSET, FREE);
            OrderedMemory.setLong(memory, SENDER_OFFSET, 0);
            OrderedMemory.setLong(memory, TAIL_OFFSET, 0);
            OrderedMemory.setLong(memory, HEAD_OFFSET, 0);
            // release: a sender whose compare-and-set finds owner 0 sees the cleared lane
            OrderedMemory.setLongRelease(memory, OWNER_OFFSET, 0);
        }
    }

    private Inbox(
            SharedFolder folder,
            String name,
            Arena arena,
            MemorySegment file,
            LoopbackConfig config) {
        this.folder = folder;
        this.name = name;
        this.arena = arena;
        this.file = file;
        this.livenessNs = config.livenessNs();
        this.laneBytes = config.inboxBytes();
        this.lanes = new Lane[config.maxPeers()];
        for (int i = 0; i < lanes.length; i++) {
            lanes[i] = new Lane(file.asSlice(laneOffset(i, laneBytes), DATA_OFFSET + laneBytes));
        }
        this.sweptAtNs = System.nanoTime();
    }

    static Inbox create(SharedFolder folder, LoopbackId id, LoopbackConfig config) {
        final Arena arena = Arena.ofShared();
        try {
            final long length = fileLength(config.maxPeers(), config.inboxBytes());
            final MemorySegment file = folder.create(id.inboxFile(), length, arena);
            OrderedMemory.setLong(file, INSTANCE_OFFSET, id.instance());
            OrderedMemory.setLong(file, PID_OFFSET, id.pid());
            OrderedMemory.setLong(file, LANES_OFFSET, config.maxPeers());
            OrderedMemory.setLong(file, LANE_BYTES_OFFSET, config.inboxBytes());
            OrderedMemory.setLong(file, POLLED_OFFSET, System.nanoTime());
            // release: a sender that reads the magic with acquire sees the whole header
            OrderedMemory.setLongRelease(file, 0, MAGIC);
            return new Inbox(folder, id.inboxFile(), arena, file, config);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /**
     * Hands over what has arrived.
     *
     * @return number of messages
     * @throws KvTransportException once for a lane that makes no sense
     */
    int take(NotificationHandler handler) {
        final long now = System.nanoTime();
        OrderedMemory.setLongOpaque(file, POLLED_OFFSET, now);
        final int used =
                Math.clamp(OrderedMemory.getLongAcquire(file, USED_OFFSET), 0, lanes.length);
        int count = 0;
        for (int i = 0; i < used; i++) {
            final Lane lane = lanes[i];
            final int state = lane.state();
            if (state == OPEN || state == LEFT) {
                count += take(lane, handler);
            }
            if (state == LEFT
                    && lane.isEmpty()
                    && OrderedMemory.compareAndSetInt(lane.memory, STATE_OFFSET, LEFT, FREE)) {
                lane.free();
            }
        }
        if (now - sweptAtNs >= livenessNs) {
            sweptAtNs = now;
            return count + sweep(handler);
        }
        return count;
    }

    /** Frees the lanes of senders whose process is gone; what they had published is handed over. */
    private int sweep(NotificationHandler handler) {
        int count = 0;
        for (Lane lane : lanes) {
            if (lane.isOrphaned()) {
                final int state = lane.state();
                if (state == OPEN || state == LEFT) {
                    count += take(lane, handler);
                }
                lane.free();
            }
        }
        return count;
    }

    private int take(Lane lane, NotificationHandler handler) {
        // acquire: pairs with InboxSender.offer, so lengths and messages below tail are whole
        final long tail = OrderedMemory.getLongAcquire(lane.memory, TAIL_OFFSET);
        long head = OrderedMemory.getLong(lane.memory, HEAD_OFFSET);
        int count = 0;
        while (head != tail) {
            lane.know();
            final int offset = (int) (head & (laneBytes - 1));
            final int length = OrderedMemory.getInt(lane.data, offset);
            final int record = record(length, offset, tail - head);
            if (record < 0) {
                // its sender reads state with acquire in isClosed and treats this end as lost
                OrderedMemory.setIntRelease(lane.memory, STATE_OFFSET, BROKEN);
                throw new KvTransportException(
                        Kind.FAILED,
                        "inbox "
                                + name
                                + ": a message of "
                                + length
                                + " bytes where "
                                + (tail - head)
                                + " are taken; nothing more is taken from peer "
                                + lane.sender
                                + " until it connects anew in another process");
            }
            try {
                if (length != PADDING) {
                    count++;
                    handler.onNotification(
                            lane.sender, lane.data.asSlice(offset + RECORD_HEADER, length));
                }
            } finally {
                head += record;
                // release: the handler is done with the message before its sender, which reads
                // head with acquire, writes over its bytes
                OrderedMemory.setLongRelease(lane.memory, HEAD_OFFSET, head);
            }
        }
        return count;
    }

    /** Bytes to the next record, -1 if this one cannot be. */
    private int record(int length, int offset, long available) {
        final int toEnd = laneBytes - offset;
        if ((offset & 7) != 0 || available < 0 || available > laneBytes) {
            return -1;
        }
        final int record =
                length == PADDING
                        ? toEnd
                        : length < 0 || length > KvTransport.MAX_MESSAGE
                                ? -1
                                : recordLength(length);
        return record <= toEnd && record <= available ? record : -1;
    }

    /** Tells all senders that nothing is taken any more, and deletes the file; idempotent. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            // senders read closed with acquire before each use; nothing is taken after this store
            OrderedMemory.setLongRelease(file, CLOSED_OFFSET, 1);
            folder.delete(name);
            arena.close();
        }
    }
}
