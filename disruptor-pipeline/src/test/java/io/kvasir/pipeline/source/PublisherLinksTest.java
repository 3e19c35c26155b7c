package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;

class PublisherLinksTest {
    private static final long PUBLISHER = 77;

    private final List<Long> passed = new ArrayList<>();
    private final PublisherLinks links = new PublisherLinks(this::pass, this::nowNs);
    private long nowNs;

    private long nowNs() {
        return nowNs;
    }

    private void pass(byte[] bytes, int offset, int length) {
        assertEquals(Long.BYTES, length);
        passed.add(ByteBuffer.wrap(bytes, offset, length).getLong());
    }

    private void take(int link, long... numbers) {
        for (long number : numbers) {
            takeOf(link, PUBLISHER, number);
        }
    }

    private void takeOf(int link, long publisher, long number) {
        final byte[] bytes = ByteBuffer.allocate(3 + Long.BYTES).putLong(3, number).array();
        links.take(link, publisher, number, bytes, 3, Long.BYTES);
        bytes[3] = 99; // what waits was copied
    }

    private void wait(int ms) {
        nowNs += ms * 1_000_000L;
        links.tick();
    }

    @Test
    void whatComesOverSeveralLinksIsPassedOnce() {
        take(0, 4, 5);
        take(1, 4, 5, 6);
        take(2, 6, 7);
        take(0, 6, 7);
        assertEquals(List.of(4L, 5L, 6L, 7L), passed);
        assertEquals(5, links.doubles());
    }

    @Test
    void whatOneLinkHasLostAnotherBringsInItsOrder() {
        take(0, 1);
        take(1, 1);
        take(0, 3, 4);
        assertEquals(List.of(1L), passed, "2 may still come");
        take(1, 2, 3, 4);
        assertEquals(List.of(1L, 2L, 3L, 4L), passed);
        wait(1_000);
        take(0, 5);
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L), passed);
    }

    @Test
    void whatNoLinkCanBringIsNotWaitedFor() {
        take(0, 1, 3);
        assertEquals(List.of(1L, 3L), passed, "there is no other link");
        take(1, 3);
        take(0, 5);
        take(1, 5);
        assertEquals(List.of(1L, 3L, 5L), passed, "the other link is past it");
    }

    @Test
    void whatDoesNotComeIsGivenUpAfterAWhile() {
        take(0, 1);
        take(1, 1);
        take(0, 3, 5);
        wait(400);
        assertEquals(List.of(1L), passed);
        wait(200);
        assertEquals(List.of(1L, 3L, 5L), passed);
        take(1, 2, 4);
        assertEquals(List.of(1L, 3L, 5L), passed, "too late");
        take(1, 6);
        assertEquals(List.of(1L, 3L, 5L, 6L), passed);
    }

    @Test
    void aLinkThatIsLostIsNotWaitedFor() {
        take(0, 1);
        take(1, 1);
        assertEquals(Set.of(), links.lost(1));
        take(0, 3);
        assertEquals(List.of(1L, 3L), passed);
        assertFalse(links.mayBringBack(1, PUBLISHER), "the other one carries it");
        assertEquals(Set.of(PUBLISHER), links.lost(0));
        assertTrue(links.mayBringBack(0, PUBLISHER));
        assertFalse(links.mayBringBack(1, PUBLISHER), "it came over the other one");
        assertTrue(links.mayBringBack(1, PUBLISHER + 1), "nothing is known of it");
        assertEquals(Set.of(), links.lost(0), "it was lost before");
    }

    @Test
    void whoHasAnsweredIsKnownBeforeItsFirstMessage() {
        links.seen(2, PUBLISHER);
        assertEquals(Set.of(PUBLISHER), links.lost(2));
        take(2, 9);
        assertEquals(List.of(9L), passed);
    }

    @Test
    void numbersThatFallOverOneLinkBeginAnew() {
        take(0, 8, 9, 0, 1);
        assertEquals(List.of(8L, 9L, 0L, 1L), passed);
    }

    @Test
    void noMoreWaitThanMay() {
        take(0, 1);
        take(1, 1);
        for (int i = 0; i <= PublisherLinks.MOST_WAITING; i++) {
            take(0, 3 + 2 * i);
        }
        assertEquals(2 + PublisherLinks.MOST_WAITING, passed.size());
    }

    @Test
    void aHundredThousandPublishersDoNoHarm() {
        for (int i = 0; i < 100_000; i++) {
            takeOf(0, i, 5);
            takeOf(1, i, 5);
        }
        assertEquals(100_000, passed.size());
        assertTrue(links.lost(0).isEmpty());
        assertEquals(PublisherLinks.MOST_PUBLISHERS, links.lost(1).size());
    }

    /** Links that lose and delay, but do not reorder: what one of them brings in time is passed. */
    @Test
    void whateverLinksLoseAndDelayTheOrderIsKept() {
        for (int story = 0; story < 300; story++) {
            passed.clear();
            final Random random = new Random(Seeds.next("PublisherLinks"));
            final PublisherLinks all = new PublisherLinks(this::pass, this::nowNs);
            final int count = 2 + random.nextInt(2);
            final List<Queue<long[]>> pipes = new ArrayList<>(); // number, when it arrives
            for (int link = 0; link < count; link++) {
                pipes.add(new ArrayDeque<>());
            }
            final Set<Long> arrived = new TreeSet<>();
            for (long number = 0; number < 400; number++) {
                nowNs += 1_000_000;
                for (Queue<long[]> pipe : pipes) {
                    // by the first one all are known to carry the publisher
                    if (number == 0 || random.nextInt(8) > 0) {
                        final long atMs =
                                nowNs / 1_000_000 + (number == 0 ? 0 : random.nextInt(200));
                        pipe.add(new long[] {number, atMs});
                        arrived.add(number);
                    }
                }
                deliver(all, pipes, nowNs / 1_000_000);
            }
            for (int ms = 0; ms < 1_000; ms++) {
                nowNs += 1_000_000;
                deliver(all, pipes, nowNs / 1_000_000);
            }
            assertEquals(List.copyOf(arrived), passed);
        }
    }

    private static void deliver(PublisherLinks all, List<Queue<long[]>> pipes, long nowMs) {
        for (int link = 0; link < pipes.size(); link++) {
            while (!pipes.get(link).isEmpty() && pipes.get(link).peek()[1] <= nowMs) {
                final long number = pipes.get(link).remove()[0];
                all.take(
                        link,
                        PUBLISHER,
                        number,
                        ByteBuffer.allocate(Long.BYTES).putLong(number).array(),
                        0,
                        Long.BYTES);
            }
        }
        all.tick();
    }
}
