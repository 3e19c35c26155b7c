package io.kvasir.nixl.loopback;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Memory that other processes can reach: a mapped file, made by {@link LoopbackTransport#pool}.
 * Regions inside it, once registered, can be read and written by peers in any process of the
 * machine.
 *
 * <pre>
 *   file
 *   0        8          16       24       32            4096
 *   +--------+----------+--------+--------+-------------+-------------------+
 *   | magic  | instance | number | length | (unused)    | memory: length    |
 *   +--------+----------+--------+--------+-------------+-------------------+
 * </pre>
 *
 * <p>{@link #close} deletes the file and unmaps the memory here; a peer that has mapped it keeps
 * it. Close it when its regions are deregistered and no peer uses them. Any thread may close it.
 */
final class SharedMemory implements AutoCloseable {
    private static final long MAGIC = 0x4D_45_4D_52_53_56_4B_01L;
    private static final long INSTANCE_OFFSET = 8;
    private static final long NUMBER_OFFSET = 16;
    private static final long LENGTH_OFFSET = 24;

    private final SharedFolder folder;
    private final Arena arena;
    private final MemorySegment segment;
    private final String file;
    private final int number;

    private SharedMemory(
            SharedFolder folder, Arena arena, MemorySegment segment, String file, int number) {
        this.folder = folder;
        this.arena = arena;
        this.segment = segment;
        this.file = file;
        this.number = number;
    }

    static SharedMemory create(SharedFolder folder, LoopbackId id, int number, long bytes) {
        final Arena arena = Arena.ofShared();
        try {
            final String file = id.memoryFile(number);
            final MemorySegment all = folder.create(file, SharedFolder.PAGE + bytes, arena);
            all.set(ValueLayout.JAVA_LONG, INSTANCE_OFFSET, id.instance());
            all.set(ValueLayout.JAVA_LONG, NUMBER_OFFSET, number);
            all.set(ValueLayout.JAVA_LONG, LENGTH_OFFSET, bytes);
            all.set(ValueLayout.JAVA_LONG, 0, MAGIC);
            return new SharedMemory(
                    folder, arena, all.asSlice(SharedFolder.PAGE, bytes), file, number);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
    }

    /**
     * Maps a peer's memory.
     *
     * @return without its header
     * @throws KvTransportException if it is not what the peer says
     */
    static MemorySegment map(SharedFolder folder, LoopbackId peer, int number, Arena arena) {
        final String file = peer.memoryFile(number);
        final MemorySegment all = folder.map(file, arena);
        final long bytes = all.byteSize() - SharedFolder.PAGE;
        if (all.get(ValueLayout.JAVA_LONG, 0) != MAGIC
                || all.get(ValueLayout.JAVA_LONG, INSTANCE_OFFSET) != peer.instance()
                || all.get(ValueLayout.JAVA_LONG, NUMBER_OFFSET) != number
                || all.get(ValueLayout.JAVA_LONG, LENGTH_OFFSET) != bytes) {
            throw new KvTransportException(
                    Kind.BAD_METADATA, file + " is not memory " + number + " of peer " + peer);
        }
        return all.asSlice(SharedFolder.PAGE);
    }

    /**
     * The memory, zeros at first; begins on a page.
     *
     * @return usable by any thread until it is closed
     */
    MemorySegment segment() {
        return segment;
    }

    /**
     * Name of the file in the transport's folder.
     *
     * @return unique on this machine
     */
    String file() {
        return file;
    }

    int number() {
        return number;
    }

    /** Whether it is still mapped. */
    boolean isOpen() {
        return segment.scope().isAlive();
    }

    /** Whether some byte of a range lies in it. */
    boolean touches(long address, long length) {
        return address < segment.address() + segment.byteSize()
                && segment.address() < address + length;
    }

    /** Whether a range lies in it. */
    boolean contains(long address, long length) {
        return address >= segment.address()
                && length <= segment.byteSize()
                && address - segment.address() <= segment.byteSize() - length;
    }

    /** Takes the name away, so that no process maps it any more. */
    void delete() {
        folder.delete(file);
    }

    /** Deletes the file and unmaps the memory; idempotent. */
    @Override
    public void close() {
        delete();
        if (isOpen()) {
            arena.close();
        }
    }
}
