package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

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

    @Test
    void theNextMessageThatIsThereComesWithItsNumber() {
        final ReplayBuffer buffer = new ReplayBuffer(3, 1_000);
        assertNull(buffer.from(0));
        for (int i = 0; i < 5; i++) {
            buffer.add(new byte[] {(byte) i});
        }
        assertEquals(2, buffer.from(0).number());
        assertArrayEquals(new byte[] {2}, buffer.from(0).payload());
        assertArrayEquals(new byte[] {4}, buffer.from(4).payload());
        assertNull(buffer.from(5));
    }

    @Test
    void aMessageThatIsFoundIsReadThoughOthersTakeItsPlace() throws InterruptedException {
        final ReplayBuffer buffer = new ReplayBuffer(1, 1_000);
        final int messages = 300_000;
        final Thread publisher =
                Thread.ofPlatform()
                        .start(
                                () -> {
                                    for (long i = 0; i < messages; i++) {
                                        buffer.add(ZmqPublisher.number(i));
                                    }
                                });
        long next = 0;
        while (next < messages) {
            final ReplayBuffer.Message message = buffer.from(next);
            if (message != null) {
                assertTrue(message.number() >= next);
                assertArrayEquals(ZmqPublisher.number(message.number()), message.payload());
                next = message.number() + 1;
            }
        }
        publisher.join();
    }
}
