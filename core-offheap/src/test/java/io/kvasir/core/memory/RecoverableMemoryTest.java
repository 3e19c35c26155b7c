package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.memory.RecoverableMemory.Word;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.UUID;

/** What a process that is killed after any of its stores leaves to the next one. */
class RecoverableMemoryTest {
    private static final List<Word> WORDS = List.of(new Word("a", 11), new Word("b", 12));
    private static final RecoverableMemory.Shape SHAPE =
            new RecoverableMemory.Shape(4096, new long[] {4096, 128}, WORDS);

    private final OffHeap whole = OffHeap.allocate(SHAPE.length());
    private final OffHeap scratch = OffHeap.allocate(SHAPE.length());
    private final RecoverableMemory memory = StoreRecorder.create(whole, SHAPE, 77, 78);

    @AfterEach
    void close() {
        memory.close();
        scratch.close();
    }

    private static byte[] areas(byte[] image) {
        return Arrays.copyOfRange(image, StoreRecorder.areas(SHAPE), image.length);
    }

    private void everyKindOfStore() {
        final OffHeap first = memory.area(0);
        final OffHeap second = memory.area(1);
        first.putByte(3, (byte) 9);
        first.putByte(8, (byte) 10);
        first.putShort(10, (short) 11);
        first.putShortOpaque(12, (short) 12);
        first.putInt(16, 13);
        first.putIntOpaque(20, 14);
        first.putIntRelease(24, 15);
        first.putLong(32, 16);
        first.putLongOpaque(40, 17);
        first.putLongRelease(48, 18);
        first.putLong(32, 19);
        first.putLongs(40, new long[] {1, 2, 3, 4, 5}, 1, 4);
        first.copy(32, 256, 64);
        first.zero(32, 64);
        first.putInt(64, 20);
        second.putLong(0, 21);
        second.putLong(120, 22);
    }

    @Test
    void allStoresOfAnUnfinishedChangeAreTakenBackWhereverItIsCut() {
        if (!OffHeap.isCheckable()) {
            return;
        }
        for (int i = 0; i < 64; i++) {
            memory.area(0).putLong(8L * i, 100 + i);
        }
        memory.made();
        final StoreRecorder recorder = new StoreRecorder(whole, memory);
        for (int change = 0; change < 2; change++) { // the second finds records of the first
            recorder.clear();
            final byte[] before = recorder.image();
            everyKindOfStore();
            memory.commit();
            final byte[] after = recorder.image();
            final byte[] image = before.clone();
            for (int n = 0; n <= recorder.count(); n++) {
                StoreRecorder.load(scratch, image);
                assertNotNull(StoreRecorder.reopen(scratch, SHAPE), "killed after store " + n);
                assertArrayEquals(
                        areas(n < recorder.count() ? before : after),
                        areas(StoreRecorder.image(scratch)),
                        "killed after store " + n);
                if (n < recorder.count()) {
                    recorder.apply(n, image);
                }
            }
            assertArrayEquals(after, image, "not every store was recorded");
        }
    }

    @Test
    void aKillWhileAChangeIsTakenBackIsMadeGoodByTheNextStart() {
        if (!OffHeap.isCheckable()) {
            return;
        }
        memory.made();
        final byte[] before = StoreRecorder.image(whole);
        everyKindOfStore();
        final byte[] left = StoreRecorder.image(whole);
        for (int n = 0; ; n++) {
            StoreRecorder.load(scratch, left);
            final int limit = n;
            final int[] made = {0};
            scratch.listen(
                    new OffHeap.StoreListener() {
                        @Override
                        public void store(long offset, int length, long value, boolean release) {
                            if (made[0]++ == limit) {
                                throw new IllegalStateException("killed");
                            }
                        }

                        @Override
                        public void fence() {}
                    });
            boolean killed = false;
            try {
                StoreRecorder.reopen(scratch, SHAPE);
            } catch (IllegalStateException e) {
                killed = true;
            }
            scratch.listen(null);
            assertNotNull(StoreRecorder.reopen(scratch, SHAPE));
            assertArrayEquals(areas(before), areas(StoreRecorder.image(scratch)));
            if (!killed) {
                assertTrue(n > 20, "too few steps: " + n);
                return;
            }
        }
    }

    @Test
    void aChangeThatIsLargerThanItsLogCannotBeTakenBackUntilItIsCommitted() {
        memory.made();
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 300; i++) { // 16 bytes of the log each
                memory.area(0).putLong(8L * i, i);
            }
            StoreRecorder.load(scratch, StoreRecorder.image(whole));
            assertNull(StoreRecorder.reopen(scratch, SHAPE));
            memory.commit();
            StoreRecorder.load(scratch, StoreRecorder.image(whole));
            assertNotNull(StoreRecorder.reopen(scratch, SHAPE));
            assertEquals(round + 1, memory.incompleteChanges());
        }
    }

    @Test
    void aLogThatIsNoneIsNotBelieved() {
        memory.made();
        everyKindOfStore();
        final byte[] left = StoreRecorder.image(whole);
        for (long end : new long[] {0, 8, -2, 1 << 30, 4097, 72}) {
            StoreRecorder.load(scratch, left);
            scratch.putLong(RecoverableDescriptor.LOG_OFFSET, end);
            assertNull(StoreRecorder.reopen(scratch, SHAPE), "end=" + end);
        }
    }

    @Test
    void whatIsInDoubtIsNamedAndNotUsed() {
        final UUID boot = StoreRecorder.BOOT;
        final long length = SHAPE.length();
        assertTrue(problem(whole, length, SHAPE, boot).contains("being made"));
        memory.made();
        assertNull(problem(whole, length, SHAPE, boot));
        assertTrue(problem(whole, length - 1, SHAPE, boot).contains("bytes"));
        assertTrue(problem(whole, length, SHAPE, new UUID(1, 3)).contains("restarted"));
        assertTrue(
                problem(whole, length, SHAPE, RecoverableMemory.NO_BOOT).contains("nothing says"));
        final RecoverableMemory.Shape otherWords =
                new RecoverableMemory.Shape(
                        4096,
                        new long[] {4096, 128},
                        List.of(new Word("a", 11), new Word("b", 13)));
        assertTrue(
                problem(whole, length, otherWords, boot)
                        .endsWith("other settings: b 12 instead of 13"));
        final RecoverableMemory.Shape longer =
                new RecoverableMemory.Shape(4096, new long[] {8192, 128}, WORDS);
        assertTrue(problem(whole, length, longer, boot).contains("bytes"));
        assertTrue(changed(RecoverableDescriptor.MAGIC_OFFSET).contains("no such memory"));
        assertTrue(changed(RecoverableDescriptor.VERSION_OFFSET).contains("version"));
        assertTrue(changed(RecoverableDescriptor.COUNT_OFFSET).contains("checksum"));
        assertTrue(changed(RecoverableDescriptor.wordOffset(3)).contains("checksum"));
        memory.spoil();
        assertTrue(problem(whole, length, SHAPE, boot).contains("error"));
    }

    private static String problem(
            OffHeap whole, long length, RecoverableMemory.Shape shape, UUID boot) {
        return RecoverableMemory.problem(whole, length, shape, boot);
    }

    private String changed(long offset) {
        final long before = whole.getLong(offset);
        whole.putLong(offset, before + 1_000);
        final String problem = problem(whole, SHAPE.length(), SHAPE, StoreRecorder.BOOT);
        whole.putLong(offset, before);
        return problem;
    }

    @Test
    void constantsAreThereAgainAndAKillIsToldFromAClose() {
        memory.made();
        StoreRecorder.load(scratch, StoreRecorder.image(whole));
        final RecoverableMemory killed = StoreRecorder.reopen(scratch, SHAPE);
        assertEquals(77, killed.constant(0));
        assertEquals(78, killed.constant(1));
        assertTrue(killed.wasKilled());
        assertTrue(killed.isReopened());
        assertFalse(memory.isReopened());
        assertEquals(2, killed.generation());
    }

    @Test
    void aMemoryWithMoreWordsThanItsPageHasRoomForIsRefused() {
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        new RecoverableMemory.Shape(
                                4096, new long[] {8}, Collections.nCopies(600, new Word("a", 1))));
    }

    @Test
    void theFirstPageAndTheRecordsOfTheLogAreAsTheyAreDrawn() {
        assertEquals(16, RecoverableDescriptor.STATE_OFFSET);
        assertEquals(32, RecoverableDescriptor.BOOT_OFFSET);
        assertEquals(48, RecoverableDescriptor.CHECKSUM_OFFSET);
        assertEquals(72, RecoverableDescriptor.WORDS_OFFSET);
        assertEquals(88, RecoverableDescriptor.wordOffset(2));
        assertEquals(8192, RecoverableDescriptor.pages(4097));
        final long trailer = UndoLogDescriptor.trailer(5, 1L << 40);
        assertEquals(5, UndoLogDescriptor.longs(trailer));
        assertEquals(1L << 40, UndoLogDescriptor.offset(trailer));
    }
}
