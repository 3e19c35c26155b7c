package io.kvasir.opstreams.kvops;

import static io.kvasir.opstreams.kvops.KvopsDescriptor.INT;
import static io.kvasir.opstreams.kvops.KvopsDescriptor.LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A KVOPS file, mapped. Owns the mapping; its cursors must not be used after {@link #close()}. */
public final class KvopsFile implements AutoCloseable {
    private final Path path;
    private final Arena arena;
    private final MemorySegment bytes;
    private final KvopsHeader header;

    private KvopsFile(Path path, Arena arena, MemorySegment bytes) throws KvopsFormatException {
        this.path = path;
        this.arena = arena;
        this.bytes = bytes;
        this.header = readHeader();
    }

    /**
     * Maps a file and reads its header.
     *
     * @throws KvopsFormatException if it does not start like a KVOPS v1 stream
     * @throws IOException if it cannot be read
     */
    public static KvopsFile open(Path path) throws IOException {
        final Arena arena = Arena.ofShared();
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            return new KvopsFile(
                    path,
                    arena,
                    channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena));
        } catch (IOException e) {
            arena.close();
            throw e;
        }
    }

    private KvopsHeader readHeader() throws KvopsFormatException {
        if (bytes.byteSize() < KvopsDescriptor.HEADER_LENGTH) {
            throw wrong(
                    bytes.byteSize(),
                    "the file ends inside the header of "
                            + KvopsDescriptor.HEADER_LENGTH
                            + " bytes");
        }
        if (bytes.get(LONG, KvopsDescriptor.MAGIC_OFFSET) != KvopsDescriptor.MAGIC) {
            throw wrong(KvopsDescriptor.MAGIC_OFFSET, "the magic is not KVOPS001");
        }
        require(KvopsDescriptor.VERSION_OFFSET, "version", KvopsDescriptor.VERSION);
        require(
                KvopsDescriptor.HEADER_LENGTH_OFFSET,
                "header length",
                KvopsDescriptor.HEADER_LENGTH);
        return new KvopsHeader(
                positive(KvopsDescriptor.BLOCK_TOKENS_OFFSET, "tokens per block"),
                workers(),
                bytes.get(LONG, KvopsDescriptor.CAPACITY_OFFSET),
                bytes.get(LONG, KvopsDescriptor.RECORDS_OFFSET),
                bytes.get(LONG, KvopsDescriptor.QUERIES_OFFSET),
                bytes.get(LONG, KvopsDescriptor.STORED_OFFSET),
                bytes.get(LONG, KvopsDescriptor.REMOVED_OFFSET),
                bytes.get(LONG, KvopsDescriptor.QUERY_BLOCKS_OFFSET),
                bytes.get(LONG, KvopsDescriptor.STORED_BLOCKS_OFFSET),
                bytes.get(LONG, KvopsDescriptor.REMOVED_BLOCKS_OFFSET),
                bytes.get(LONG, KvopsDescriptor.ROUTED_OFFSET),
                bytes.get(LONG, KvopsDescriptor.SEED_OFFSET),
                bytes.get(LONG, KvopsDescriptor.FLAGS_OFFSET),
                bytes.get(INT, KvopsDescriptor.MAX_QUERY_OFFSET),
                bytes.get(INT, KvopsDescriptor.MAX_EVENT_OFFSET));
    }

    private void require(int offset, String field, int expected) throws KvopsFormatException {
        final int found = bytes.get(INT, offset);
        if (found != expected) {
            throw wrong(offset, field + " is " + Integer.toUnsignedString(found));
        }
    }

    /** Checked here, before something is made for each of them. */
    private int workers() throws KvopsFormatException {
        final int found = positive(KvopsDescriptor.WORKERS_OFFSET, "workers");
        if (found > KvopsHeader.MAX_WORKERS) {
            throw wrong(
                    KvopsDescriptor.WORKERS_OFFSET,
                    "workers is " + found + ", more than " + KvopsHeader.MAX_WORKERS);
        }
        return found;
    }

    private int positive(int offset, String field) throws KvopsFormatException {
        final int found = bytes.get(INT, offset);
        if (found < 1) {
            throw wrong(offset, field + " is " + Integer.toUnsignedString(found));
        }
        return found;
    }

    KvopsFormatException wrong(long offset, String what) {
        return new KvopsFormatException(path, offset, what);
    }

    MemorySegment bytes() {
        return bytes;
    }

    /** Where the file lies. */
    public Path path() {
        return path;
    }

    /** Length of the file in bytes. */
    public long length() {
        return bytes.byteSize();
    }

    /** What the file says about itself. */
    public KvopsHeader header() {
        return header;
    }

    /** A cursor before the first record; one thread at a time. */
    public KvopsCursor cursor() {
        return new KvopsCursor(this);
    }

    /** Unmaps the file; a second call does nothing. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            arena.close();
        }
    }
}
