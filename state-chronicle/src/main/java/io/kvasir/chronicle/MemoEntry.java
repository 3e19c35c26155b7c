package io.kvasir.chronicle;

import io.kvasir.prompt.memo.PromptMemo;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32C;

/**
 * Layout of an entry of a {@link ChroniclePromptMemo}: up to {@value #MOST_TOKENS} tokens of a
 * section. Numbers are little-endian.
 *
 * <pre>
 *   0        32     36      40      48      52
 *   +--------+------+-------+-------+-------+--------------------+
 *   | key    | part | total | stamp | crc   | tokens, 4 B each   |
 *   +--------+------+-------+-------+-------+--------------------+
 *   part:  which thousand of the section's tokens these are
 *   total: tokens of the section
 *   stamp: when it was put, in ms since 1970
 *   crc:   CRC-32C of all other bytes
 * </pre>
 */
final class MemoEntry {
    /** Tokens of one entry. */
    static final int MOST_TOKENS = 1_000;

    static final int PART_OFFSET = PromptMemo.KEY_BYTES;
    static final int TOTAL_OFFSET = PART_OFFSET + Integer.BYTES;
    static final int STAMP_OFFSET = TOTAL_OFFSET + Integer.BYTES;
    static final int CRC_OFFSET = STAMP_OFFSET + Long.BYTES;
    static final int TOKENS_OFFSET = CRC_OFFSET + Integer.BYTES;

    /** Longest entry. */
    static final int MOST_BYTES = TOKENS_OFFSET + MOST_TOKENS * Integer.BYTES;

    private MemoEntry() {}

    private static ByteBuffer view(byte[] entry) {
        return ByteBuffer.wrap(entry).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** Parts of a section. */
    static int parts(int total) {
        return Math.max(1, Math.ceilDiv(total, MOST_TOKENS));
    }

    /** Tokens of a part. */
    static int count(int part, int total) {
        return Math.min(MOST_TOKENS, total - part * MOST_TOKENS);
    }

    /** An entry. */
    static byte[] of(byte[] key, int part, int[] tokens, long stampMs) {
        final int count = count(part, tokens.length);
        final byte[] entry = new byte[TOKENS_OFFSET + count * Integer.BYTES];
        final ByteBuffer view = view(entry);
        view.put(0, key)
                .putInt(PART_OFFSET, part)
                .putInt(TOTAL_OFFSET, tokens.length)
                .putLong(STAMP_OFFSET, stampMs);
        view.position(TOKENS_OFFSET)
                .slice()
                .order(ByteOrder.LITTLE_ENDIAN)
                .asIntBuffer()
                .put(tokens, part * MOST_TOKENS, count);
        view.putInt(CRC_OFFSET, crc(entry));
        return entry;
    }

    /** Whether all of its bytes are as they were written, as far as a checksum says. */
    static boolean isWhole(byte[] entry) {
        if (entry.length < TOKENS_OFFSET
                || entry.length > MOST_BYTES
                || view(entry).getInt(CRC_OFFSET) != crc(entry)) {
            return false;
        }
        final int total = total(entry);
        final int part = view(entry).getInt(PART_OFFSET);
        return total >= 0
                && part >= 0
                && part < parts(total)
                && entry.length == TOKENS_OFFSET + count(part, total) * Integer.BYTES;
    }

    private static int crc(byte[] entry) {
        final CRC32C crc = new CRC32C();
        crc.update(entry, 0, CRC_OFFSET);
        crc.update(entry, TOKENS_OFFSET, entry.length - TOKENS_OFFSET);
        return (int) crc.getValue();
    }

    /** Whether it is a part of a section. */
    static boolean is(byte[] entry, byte[] key, int part) {
        return view(entry).getInt(PART_OFFSET) == part
                && Arrays.equals(entry, 0, PromptMemo.KEY_BYTES, key, 0, PromptMemo.KEY_BYTES);
    }

    /** Tokens of its section. */
    static int total(byte[] entry) {
        return view(entry).getInt(TOTAL_OFFSET);
    }

    /** When it was put. */
    static long stampMs(byte[] entry) {
        return view(entry).getLong(STAMP_OFFSET);
    }

    /** Copies its tokens to where they are in their section. */
    static void copy(byte[] entry, int part, int[] tokens) {
        view(entry)
                .position(TOKENS_OFFSET)
                .slice()
                .order(ByteOrder.LITTLE_ENDIAN)
                .asIntBuffer()
                .get(tokens, part * MOST_TOKENS, count(part, tokens.length));
    }
}
