package io.kvasir.chronicle;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.prompt.memo.PromptMemo;

import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.HexFormat;

class MemoEntryTest {
    private static final byte[] KEY = new byte[PromptMemo.KEY_BYTES];

    @Test
    void bytesAreAsDrawn() {
        Arrays.fill(KEY, (byte) 0xAB);
        assertEquals(
                "ab".repeat(32) + "00000000" + "02000000" + "0100000000000000",
                HexFormat.of()
                        .formatHex(
                                MemoEntry.of(KEY, 0, new int[] {7, 0x01020304}, 1),
                                0,
                                MemoEntry.CRC_OFFSET));
        assertEquals(
                "0700000004030201",
                HexFormat.of()
                        .formatHex(
                                MemoEntry.of(KEY, 0, new int[] {7, 0x01020304}, 1),
                                MemoEntry.TOKENS_OFFSET,
                                MemoEntry.TOKENS_OFFSET + 8));
    }

    @Test
    void eachPartHasItsThousand() {
        final int[] tokens = new int[2_500];
        Arrays.setAll(tokens, i -> i);
        final int[] copied = new int[2_500];
        assertEquals(3, MemoEntry.parts(2_500));
        for (int part = 0; part < 3; part++) {
            final byte[] entry = MemoEntry.of(KEY, part, tokens, 9);
            assertTrue(MemoEntry.isWhole(entry));
            assertTrue(MemoEntry.is(entry, KEY, part));
            assertFalse(MemoEntry.is(entry, KEY, part + 1));
            MemoEntry.copy(entry, part, copied);
        }
        assertArrayEquals(tokens, copied);
    }

    @Test
    void everyByteCountsAndEveryLengthIsChecked() {
        final byte[] entry = MemoEntry.of(KEY, 0, new int[] {1, 2, 3}, 1);
        for (int i = 0; i < entry.length; i++) {
            final byte[] other = entry.clone();
            other[i] ^= 4;
            assertFalse(MemoEntry.isWhole(other), "byte " + i);
            assertFalse(MemoEntry.isWhole(Arrays.copyOf(entry, i)), "length " + i);
        }
        assertFalse(MemoEntry.isWhole(new byte[MemoEntry.MOST_BYTES + 1]));
        assertTrue(MemoEntry.isWhole(MemoEntry.of(KEY, 0, new int[0], 1)));
    }
}
