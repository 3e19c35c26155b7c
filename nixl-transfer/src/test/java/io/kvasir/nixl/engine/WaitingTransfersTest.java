package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;

class WaitingTransfersTest {
    private final WaitingTransfers waiting = new WaitingTransfers();

    @Test
    void theOrderIsThatOfAListWhereverTheWalkIs() {
        final Random random = new Random(Seeds.next("WaitingTransfersTest"));
        final List<Transfer> model = new ArrayList<>();
        for (int i = 0; i < 100_000; i++) {
            final Transfer transfer = new Transfer();
            switch (random.nextInt(5)) {
                case 0 -> {
                    waiting.addFirst(transfer);
                    model.addFirst(transfer);
                }
                case 1 -> {
                    waiting.addLast(transfer);
                    model.addLast(transfer);
                }
                case 2 ->
                        assertSame(
                                model.isEmpty() ? null : model.removeFirst(), waiting.pollFirst());
                case 3 -> {
                    if (!model.isEmpty()) {
                        waiting.pass(waiting.pollNext());
                    }
                }
                default -> model.remove(waiting.pollNext());
            }
            assertEquals(model.size(), waiting.size());
            assertSame(model.isEmpty() ? null : model.getFirst(), waiting.peekFirst());
        }
        for (Transfer transfer : model) {
            assertSame(transfer, waiting.pollFirst());
        }
        assertNull(waiting.pollFirst());
    }

    @Test
    void aWalkComesToEachOnceInOrderAndThenBeginsAnew() {
        final List<Transfer> all = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            all.add(new Transfer());
            waiting.addLast(all.getLast());
        }
        for (int i = 0; i < 15; i++) {
            final Transfer next = waiting.pollNext();
            assertSame(all.get(i % 5), next);
            waiting.pass(next);
        }
    }
}
