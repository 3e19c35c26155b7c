package io.kvasir.pipeline.snapshot;

import io.kvasir.core.index.SlotPath;
import io.kvasir.core.index.SlotVisitor;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.function.Consumer;

/**
 * Records of what a worker slot holds, as bytes in chunks. No record goes over the end of a chunk.
 *
 * <pre>
 *   PATH    | 1 | parent kind:1 | blocks:2 | holes:2 | parent:8, not at the root | a bit for each block,
 *           in words of 8, where there are holes | local hash:8 of each block | engine hash:8 of each
 *           block that is no hole |
 *   COPIES  | 2 | engine hash:8 | copies:4 |
 *   parent kind   0 = the root, 1 = after a block, 2 = after a hole; the bits are 1 for held blocks
 * </pre>
 *
 * <p>One thread.
 */
public final class SlotRecords implements SlotVisitor {
    /** Bytes after which a chunk is full; it may be longer by one record. */
    private static final int CHUNK_BYTES = 16 << 10;

    private static final byte PATH = 1;
    private static final byte COPIES = 2;
    private static final int ROOT = 0;
    private static final int BLOCK = 1;
    private static final int HOLE = 2;
    private static final int MAX_PATH_BYTES =
            16 + SlotPath.MAX_BLOCKS / 8 + 2 * Long.BYTES * SlotPath.MAX_BLOCKS;

    private final ByteBuffer buffer =
            ByteBuffer.allocate(CHUNK_BYTES + MAX_PATH_BYTES).order(ByteOrder.LITTLE_ENDIAN);

    private final Consumer<byte[]> chunks;

    /**
     * Without records.
     *
     * @param chunks takes each chunk when it is full, and the last one from {@link #finish}
     */
    public SlotRecords(Consumer<byte[]> chunks) {
        this.chunks = chunks;
    }

    /** Hands over what is in no full chunk. The next record begins a chunk. */
    public void finish() {
        if (buffer.position() > 0) {
            final byte[] chunk = Arrays.copyOf(buffer.array(), buffer.position());
            buffer.clear();
            chunks.accept(chunk);
        }
    }

    /** Drops what is in no full chunk. */
    public void clear() {
        buffer.clear();
    }

    private void finishIfFull() {
        if (buffer.position() >= CHUNK_BYTES) {
            finish();
        }
    }

    @Override
    public void path(SlotPath path) {
        final int count = path.count();
        buffer.put(PATH);
        buffer.put(
                (byte)
                        switch (path.parentKind()) {
                            case ROOT -> ROOT;
                            case BLOCK -> BLOCK;
                            case HOLE -> HOLE;
                        });
        buffer.putShort((short) count);
        buffer.putShort((short) path.holes());
        if (path.parentKind() != SlotPath.Parent.ROOT) {
            buffer.putLong(path.parent());
        }
        for (int word = 0; path.holes() > 0 && word * Long.SIZE < count; word++) {
            buffer.putLong(path.heldWord(word));
        }
        for (int i = 0; i < count; i++) {
            buffer.putLong(path.localHash(i));
        }
        for (int i = 0; i < count; i++) {
            if (path.isHeld(i)) {
                buffer.putLong(path.engineHash(i));
            }
        }
        finishIfFull();
    }

    @Override
    public void copies(long engineHash, int copies) {
        buffer.put(COPIES);
        buffer.putLong(engineHash);
        buffer.putInt(copies);
        finishIfFull();
    }

    /** Takes records one by one. */
    public interface Reader {
        /** Some blocks of a path; false to stop. */
        boolean path(SlotPath path);

        /** Copies of an engine hash. */
        void copies(long engineHash, int copies);
    }

    /**
     * Reads the records of a chunk.
     *
     * @param chunk its payload
     * @param scratch filled with one path after the other
     * @param reader takes them
     * @return how many there were; −1 if the bytes are no records, or the reader has stopped
     */
    public static int read(byte[] chunk, SlotPath scratch, Reader reader) {
        final ByteBuffer in = ByteBuffer.wrap(chunk).order(ByteOrder.LITTLE_ENDIAN);
        int records = 0;
        try {
            while (in.hasRemaining()) {
                final boolean read =
                        switch (in.get()) {
                            case PATH -> readPath(in, scratch) && reader.path(scratch);
                            case COPIES -> readCopies(in, reader);
                            default -> false;
                        };
                if (!read) {
                    return -1;
                }
                records++;
            }
            return records;
        } catch (BufferUnderflowException e) {
            return -1;
        }
    }

    private static boolean readCopies(ByteBuffer in, Reader reader) {
        final long engineHash = in.getLong();
        final int copies = in.getInt();
        if (copies < 2) {
            return false;
        }
        reader.copies(engineHash, copies);
        return true;
    }

    private static boolean readPath(ByteBuffer in, SlotPath path) {
        final int kind = in.get();
        final int count = Short.toUnsignedInt(in.getShort());
        final int holes = Short.toUnsignedInt(in.getShort());
        if (kind < ROOT || kind > HOLE || count < 1 || count > SlotPath.MAX_BLOCKS) {
            return false;
        }
        final SlotPath.Parent parent =
                switch (kind) {
                    case ROOT -> SlotPath.Parent.ROOT;
                    case BLOCK -> SlotPath.Parent.BLOCK;
                    default -> SlotPath.Parent.HOLE;
                };
        path.begin(parent, kind == ROOT ? 0 : in.getLong());
        final int words = holes == 0 ? 0 : (count + Long.SIZE - 1) / Long.SIZE;
        final int bits = in.position();
        final int locals = bits + words * Long.BYTES;
        final int names = locals + count * Long.BYTES;
        final int end = names + (count - holes) * Long.BYTES;
        if (holes > count || end > in.limit()) {
            return false;
        }
        int name = names;
        for (int i = 0; i < count; i++) {
            final long local = in.getLong(locals + i * Long.BYTES);
            final boolean held =
                    holes == 0 || (in.getLong(bits + i / Long.SIZE * Long.BYTES) & 1L << i) != 0;
            if (!held) {
                path.addHole(local);
            } else if (name < end) {
                path.addBlock(local, in.getLong(name));
                name += Long.BYTES;
            } else {
                return false;
            }
        }
        in.position(end);
        return name == end;
    }
}
