package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

class KvEventPublisherTest {
    private final RecordedTransport transport = new RecordedTransport();
    private final KvEventPublisher publisher = new KvEventPublisher(7, 2, 4, transport);

    private static int[] tokens(int count) {
        return IntStream.rangeClosed(1, count).toArray();
    }

    @Test
    void eventsAreNumberedFromOne() throws IOException {
        assertEquals(0, publisher.lastEventId());
        assertEquals(1, publisher.publishStored(tokens(8), new long[] {101, 102}, null));
        assertEquals(2, publisher.publishStored(tokens(4), new long[] {103}, 102L));
        assertEquals(3, publisher.publishRemoved(103, 102));
        assertEquals(4, publisher.publishAllCleared());
        assertEquals(
                List.of(
                        "7/2 1 stored root [101, 102]",
                        "7/2 2 stored behind 102 [103]",
                        "7/2 3 removed [103, 102]",
                        "7/2 4 cleared"),
                transport.lines());
    }

    @Test
    void aBlockThatIsNotWholeEndsItsStore() throws IOException {
        publisher.publishStored(
                tokens(10), new int[] {4, 4, 2}, new long[] {101, 102, 103}, 0, null, null);
        assertEquals(List.of("7/2 1 stored root [101, 102]"), transport.lines());
        assertEquals(
                1, publisher.publishStored(tokens(2), new int[] {2}, new long[] {9}, 0, "", null));
        assertEquals(1, transport.messages());
    }

    @Test
    void whatDoesNotFitIsRefusedAndUsesNoNumber() {
        assertThrows(
                IllegalArgumentException.class,
                () -> publisher.publishStored(tokens(7), new long[] {1, 2}, null));
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        publisher.publishStored(
                                tokens(8), new int[] {4}, new long[] {1, 2}, 0, null, null));
        assertThrows(
                IllegalArgumentException.class,
                () -> publisher.publishStored(tokens(4), null, new long[] {1}, 5, null, null));
        assertEquals(0, publisher.lastEventId());
    }

    @Test
    void aNumberThatCouldNotBePublishedIsUsedUp() throws IOException {
        transport.failNext(1);
        assertThrows(IOException.class, () -> publisher.publishRemoved(1));
        assertEquals(2, publisher.publishRemoved(2));
        assertEquals(List.of("7/2 2 removed [2]"), transport.lines());
        publisher.skipEvent();
        assertEquals(4, publisher.publishRemoved(3));
    }

    @Test
    void longStoresAndRemovalsBecomeSeveralEvents() throws IOException {
        final int blocks = 20_000;
        final long[] names = LongStream.range(0, blocks).toArray();
        publisher.publishStored(tokens(4 * blocks), names, null);
        publisher.publishRemoved(names);
        assertEquals(
                List.of(
                        "7/2 1 stored root 0..8191",
                        "7/2 2 stored behind 8191 8192..16383",
                        "7/2 3 stored behind 16383 16384..19999",
                        "7/2 4 removed 0..8191",
                        "7/2 5 removed 8192..16383",
                        "7/2 6 removed 16384..19999"),
                transport.lines());
    }

    @Test
    void aMessageHasALimitOfEvents() throws IOException {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        for (int i = 0; i < 300; i++) {
            batch.addCleared();
        }
        assertEquals(300, publisher.publish(batch));
        assertEquals(3, transport.messages());
        assertEquals(300, transport.lines().size());
    }

    @Test
    void messagesAreNoLongerThanTheTransportCanCarry() throws IOException {
        for (int limit : new int[] {1_024, 8 << 10, 64 << 10, 1 << 20}) {
            final RecordedTransport limited = new RecordedTransport();
            limited.limitMessages(limit);
            final KvEventPublisher to =
                    new KvEventPublisher(-1, Integer.MAX_VALUE, 4, limited); // the longest numbers
            final int blocks = 20_000;
            final long[] names = LongStream.rangeClosed(1, blocks).map(i -> -i).toArray();
            to.publishStored(tokens(4 * blocks), names, -1L);
            to.publishRemoved(names);
            final KvBatch batch = new KvBatch();
            batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
            batch.markEagle();
            for (int i = 0; i < 300; i++) {
                batch.addStored(false, -1, new long[] {-2}, new long[] {-2}, 1);
            }
            to.publish(batch);
            assertTrue(
                    limited.longestMessage() <= limit,
                    () -> limited.longestMessage() + " bytes of " + limit);
            assertEquals(limited.lines().size(), to.lastEventId());
            assertTrue(limited.lines().getFirst().contains("1 stored behind -1"));
            assertTrue(limited.messages() < 40 << 20 >> Integer.numberOfTrailingZeros(limit));
        }
    }

    @Test
    void eightThreadsGetNumbersWithoutAGap() throws InterruptedException {
        final List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            threads.add(
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        for (int i = 0; i < 1_000; i++) {
                                            try {
                                                publisher.publishRemoved(i);
                                            } catch (IOException e) {
                                                throw new AssertionError(e);
                                            }
                                        }
                                    }));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        final List<String> lines = transport.lines();
        assertEquals(8_000, lines.size());
        for (int i = 0; i < lines.size(); i++) {
            assertTrue(lines.get(i).startsWith("7/2 " + (i + 1) + " "), lines.get(i));
        }
    }

    @Test
    void itsTransportIsClosedWithIt() {
        publisher.close();
        assertTrue(transport.isClosed());
    }

    @Test
    void whatIsPublishedAfterTheCloseIsRefusedAndUsesNoNumber() throws IOException {
        publisher.publishRemoved(1);
        publisher.close();
        for (Executable call :
                List.<Executable>of(
                        () -> publisher.publishStored(tokens(4), new long[] {1}, null),
                        () -> publisher.publishStored(tokens(0), new long[0], null),
                        () -> publisher.publishRemoved(1),
                        publisher::publishAllCleared,
                        () -> publisher.publish(new KvBatch()),
                        publisher::skipEvent)) {
            assertEquals(
                    "the publisher is closed",
                    assertThrows(IllegalStateException.class, call).getMessage());
        }
        assertEquals(1, publisher.lastEventId());
        assertEquals(1, transport.messages());
    }

    @Test
    void aTransportOverZmqTakesNothingAfterItsClose() throws IOException {
        final ZmqEventPlaneTransport zmq =
                new ZmqEventPlaneTransport("tcp://127.0.0.1:0", "kv-events");
        zmq.close();
        assertEquals(
                "the transport is closed",
                assertThrows(IOException.class, () -> zmq.publish(7, 2, 1, new KvBatch()))
                        .getMessage());
    }
}
