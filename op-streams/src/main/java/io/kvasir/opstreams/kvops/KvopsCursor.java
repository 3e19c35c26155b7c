package io.kvasir.opstreams.kvops;

import static io.kvasir.opstreams.kvops.KvopsDescriptor.INT;
import static io.kvasir.opstreams.kvops.KvopsDescriptor.LONG;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * View of one record of a {@link KvopsFile} after the other. Checks each record before it shows it,
 * and after the last one that the header is right. Owns no memory; one thread at a time.
 */
public final class KvopsCursor {
    private final KvopsFile file;
    private final MemorySegment bytes;
    private final long length;
    private final KvopsHeader header;
    private long offset; // of the current record
    private long next = KvopsDescriptor.HEADER_LENGTH;
    private long read;
    private long lastTimeUs;
    private final long[] records = new long[KvopsDescriptor.DECODE_BLOCK + 1];
    private final long[] blocks = new long[KvopsDescriptor.DECODE_BLOCK + 1];
    private final int[] most = new int[KvopsDescriptor.DECODE_BLOCK + 1]; // blocks of one record

    KvopsCursor(KvopsFile file) {
        this.file = file;
        this.bytes = file.bytes();
        this.length = file.length();
        this.header = file.header();
    }

    /**
     * Moves to the next record.
     *
     * @return whether there is one
     * @throws KvopsFormatException if the record is not well-formed, or if it was the last one and
     *     what the header says of all records is not so
     */
    public boolean next() throws KvopsFormatException {
        if (read == header.records()) {
            checkEnd();
            return false;
        }
        offset = next;
        if (length - offset < KvopsDescriptor.HEAD_LENGTH) {
            throw file.wrong(
                    offset,
                    "the file ends inside the head of record "
                            + read
                            + " of "
                            + header.records()
                            + ": length="
                            + length);
        }
        checkHead();
        next = offset + KvopsDescriptor.HEAD_LENGTH + Long.BYTES * payloadWords();
        read++;
        records[op()]++;
        blocks[op()] += count();
        most[op()] = Math.max(most[op()], count());
        return true;
    }

    private void checkHead() throws KvopsFormatException {
        if (op() < KvopsDescriptor.QUERY || op() > KvopsDescriptor.DECODE_BLOCK) {
            throw file.wrong(offset, "op " + (op() & 0xFF) + " is unknown, record=" + read);
        }
        final long left = length - offset - KvopsDescriptor.HEAD_LENGTH;
        if (count() < 0 || payloadWords() > left / Long.BYTES) {
            throw file.wrong(
                    offset + KvopsDescriptor.COUNT_OFFSET,
                    "the file ends inside the payload of record "
                            + read
                            + ": blocks="
                            + Integer.toUnsignedString(count())
                            + ", bytes left="
                            + left);
        }
        if (worker() < 0 || worker() >= header.workers()) {
            throw file.wrong(
                    offset + KvopsDescriptor.WORKER_OFFSET,
                    "worker "
                            + Integer.toUnsignedString(worker())
                            + " is not below the header's "
                            + header.workers());
        }
        if (timeUs() < lastTimeUs) {
            throw file.wrong(
                    offset + KvopsDescriptor.TIME_OFFSET,
                    "time goes back: " + timeUs() + " us after " + lastTimeUs + " us");
        }
        lastTimeUs = timeUs();
    }

    private void checkEnd() throws KvopsFormatException {
        if (next != length) {
            throw file.wrong(next, (length - next) + " bytes after the last record");
        }
        final KvopsHeader h = header;
        same(KvopsDescriptor.QUERIES_OFFSET, "QUERY records", h.queries(), records[1]);
        same(KvopsDescriptor.STORED_OFFSET, "STORED records", h.stored(), records[2]);
        same(KvopsDescriptor.REMOVED_OFFSET, "REMOVED records", h.removed(), records[3]);
        same(KvopsDescriptor.QUERY_BLOCKS_OFFSET, "QUERY blocks", h.queryBlocks(), blocks[1]);
        same(KvopsDescriptor.STORED_BLOCKS_OFFSET, "STORED blocks", h.storedBlocks(), blocks[2]);
        same(KvopsDescriptor.REMOVED_BLOCKS_OFFSET, "REMOVED blocks", h.removedBlocks(), blocks[3]);
        same(KvopsDescriptor.ROUTED_OFFSET, "ROUTED records", h.routed(), records[5]);
        same(
                KvopsDescriptor.MAX_QUERY_OFFSET,
                "blocks of the longest QUERY",
                Integer.toUnsignedLong(h.maxQuery()),
                most[1]);
        same(
                KvopsDescriptor.MAX_EVENT_OFFSET,
                "blocks of the longest STORED or REMOVED",
                Integer.toUnsignedLong(h.maxEvent()),
                Math.max(most[2], most[3]));
    }

    private void same(int field, String what, long inHeader, long found)
            throws KvopsFormatException {
        if (inHeader != found) {
            throw file.wrong(
                    field, "the header says " + inHeader + " " + what + ", there are " + found);
        }
    }

    private long payloadWords() {
        return KvopsDescriptor.payloadWords(op(), count());
    }

    /** Kind of the record: 1 QUERY, 2 STORED, 3 REMOVED, 4 CLEARED, 5.. of requests. */
    public byte op() {
        return bytes.get(ValueLayout.JAVA_BYTE, offset + KvopsDescriptor.OP_OFFSET);
    }

    /** Whether a store names the block before its run. */
    public boolean hasParent() {
        final byte flags =
                bytes.get(ValueLayout.JAVA_BYTE, offset + KvopsDescriptor.RECORD_FLAGS_OFFSET);
        return (flags & KvopsDescriptor.HAS_PARENT) != 0;
    }

    /** Blocks of the record. */
    public int count() {
        return bytes.get(INT, offset + KvopsDescriptor.COUNT_OFFSET);
    }

    /** Worker; 0 for a query. */
    public int worker() {
        return bytes.get(INT, offset + KvopsDescriptor.WORKER_OFFSET);
    }

    /** Number of the request; -1 for removals. */
    public int request() {
        return bytes.get(INT, offset + KvopsDescriptor.REQUEST_OFFSET);
    }

    /** Checksum of a query's answer, a store's parent; see the format for the others. */
    public long a() {
        return bytes.get(LONG, offset + KvopsDescriptor.A_OFFSET);
    }

    /** Stream time in microseconds, never decreasing. */
    public long timeUs() {
        return bytes.get(LONG, offset + KvopsDescriptor.TIME_OFFSET);
    }

    /** Name of block {@code i} of a store or removal. */
    public long name(int i) {
        return word(op() == KvopsDescriptor.STORED ? 2L * i : i);
    }

    /** Local hash of block {@code i} of a query or store. */
    public long localHash(int i) {
        return word(op() == KvopsDescriptor.STORED ? 2L * i + 1 : i);
    }

    private long word(long i) {
        return bytes.get(LONG, offset + KvopsDescriptor.HEAD_LENGTH + Long.BYTES * i);
    }

    /** Names of a store's or removal's blocks, [count]; a new array. */
    public long[] names() {
        final long[] names = new long[count()];
        for (int i = 0; i < names.length; i++) {
            names[i] = name(i);
        }
        return names;
    }

    /** Local hashes of a query's or store's blocks, [count]; a new array. */
    public long[] localHashes() {
        final long[] hashes = new long[count()];
        for (int i = 0; i < hashes.length; i++) {
            hashes[i] = localHash(i);
        }
        return hashes;
    }
}
