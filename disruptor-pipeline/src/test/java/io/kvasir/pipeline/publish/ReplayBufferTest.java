package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import org.junit.jupiter.api.Test;

class ReplayBufferTest {
    @Test
    void theOldestMessagesGoWhenThereAreTooMany() {
        final ReplayBuffer buffer = new ReplayBuffer(3, 1_000);
        assertEquals(0, buffer.next());
        for (int i = 0; i < 5; i++) {
            assertEquals(i, buffer.add(new byte[] {(byte) i}));
        }
        assertNull(buffer.get(1));
        assertArrayEquals(new byte[] {2}, buffer.get(2));
        assertArrayEquals(new byte[] {4}, buffer.get(4));
        assertNull(buffer.get(5));
        assertEquals(2, buffer.available(0));
        assertEquals(4, buffer.available(4));
    }

    @Test
    void theOldestMessagesGoWhenTheyAreTooLargeButNeverTheNewest() {
        final ReplayBuffer buffer = new ReplayBuffer(100, 10);
        buffer.add(new byte[6]);
        buffer.add(new byte[6]);
        assertNull(buffer.get(0));
        buffer.add(new byte[50]);
        assertEquals(2, buffer.available(0));
        assertEquals(50, buffer.get(2).length);
    }
}
