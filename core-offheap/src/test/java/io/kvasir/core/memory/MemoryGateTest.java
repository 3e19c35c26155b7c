package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

class MemoryGateTest {
    private final List<String> closed = new ArrayList<>();
    private final MemoryGate gate = new MemoryGate("the test");

    @Test
    void withNoCallerInsideTheMemoryIsGivenBackAtOnceLastFirst() {
        gate.own(() -> closed.add("first"));
        gate.own(() -> closed.add("second"));
        gate.close();
        gate.close();
        assertEquals(List.of("second", "first"), closed);
        assertTrue(gate.isReleased());
    }

    @Test
    void theLastCallerOutGivesTheMemoryBack() {
        gate.own(() -> closed.add("memory"));
        final int first = gate.enter();
        final int second = gate.enter();
        gate.close();
        gate.exit(first);
        assertEquals(List.of(), closed);
        gate.exit(second);
        assertEquals(List.of("memory"), closed);
    }

    @Test
    void aClosedGateRefusesByName() {
        gate.close();
        assertEquals(MemoryGate.CLOSED, gate.enter());
        assertEquals(
                "the test is closed",
                assertThrows(ClosedException.class, gate::enterOrThrow).getMessage());
        assertThrows(ClosedException.class, () -> gate.own(() -> closed.add("late")));
        assertEquals(List.of("late"), closed, "what comes too late is not kept");
    }

    @Test
    void aPinnedWriterKeepsTheMemoryAndEntersForNothing() {
        gate.own(() -> closed.add("memory"));
        final WriterLane writer = new WriterLane(gate);
        writer.pin();
        assertThrows(IllegalStateException.class, writer::pin);
        gate.close();
        final int lane = writer.enter();
        writer.exit(lane);
        assertEquals(List.of(), closed);
        writer.unpin();
        writer.unpin();
        assertEquals(List.of("memory"), closed);
        assertThrows(ClosedException.class, writer::enter);
    }

    @Test
    void noCallerIsEverInsideReleasedMemory() throws InterruptedException {
        for (int round = 0; round < 80; round++) {
            final MemoryGate raced = new MemoryGate("the race");
            final AtomicBoolean alive = new AtomicBoolean(true);
            final AtomicInteger releases = new AtomicInteger();
            final AtomicInteger wrong = new AtomicInteger();
            raced.own(
                    () -> {
                        alive.set(false);
                        releases.incrementAndGet();
                    });
            final List<Thread> callers = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                callers.add(
                        Thread.ofPlatform()
                                .start(
                                        () -> {
                                            int lane = raced.enter();
                                            while (lane != MemoryGate.CLOSED) {
                                                if (!alive.get()) {
                                                    wrong.incrementAndGet();
                                                }
                                                raced.exit(lane);
                                                lane = raced.enter();
                                            }
                                        }));
            }
            raced.close();
            for (Thread caller : callers) {
                caller.join();
            }
            assertEquals(0, wrong.get());
            assertEquals(1, releases.get());
            assertFalse(alive.get());
        }
    }

    @Test
    void anErrorOfOneMemoryLeavesNoneOfTheOthers() {
        final MemoryGate gate = new MemoryGate("the test");
        final AtomicInteger closed = new AtomicInteger();
        gate.own(closed::incrementAndGet);
        gate.own(
                () -> {
                    throw new NoClassDefFoundError("p/Gone");
                });
        gate.own(closed::incrementAndGet);
        assertThrows(NoClassDefFoundError.class, gate::close);
        assertEquals(2, closed.get());
        assertTrue(gate.isReleased());
        gate.close(); // does nothing
    }
}
