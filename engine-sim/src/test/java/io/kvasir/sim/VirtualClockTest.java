package io.kvasir.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.sim.config.SimClock;
import io.kvasir.sim.config.VirtualClock;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;

import java.time.Instant;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;

class VirtualClockTest {
    private final VirtualClock clock = new VirtualClock();
    private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();

    /** Writes down its name and the time at each multiple of its period. */
    private Thread ticking(String name, long periodNs, long untilNs) {
        final Thread thread =
                Thread.ofPlatform()
                        .daemon()
                        .start(
                                () -> {
                                    long dueNs = periodNs;
                                    while (dueNs <= untilNs) {
                                        clock.parkUntil(this, dueNs);
                                        if (clock.nanoTime() >= dueNs) {
                                            seen.add(name + clock.nanoTime());
                                            dueNs += periodNs;
                                        }
                                    }
                                    clock.leave();
                                });
        Eventually.holds(() -> thread.getState() == Thread.State.WAITING);
        return thread;
    }

    @Test
    void eachActorRunsAtItsDueMomentsAndTimeWaitsForIt() throws InterruptedException {
        final Thread fast = ticking("a", 20, 60);
        final Thread slow = ticking("b", 50, 100);
        clock.advance(65);
        assertEquals(List.of("a20", "a40", "b50", "a60"), List.copyOf(seen));
        assertEquals(65, clock.nanoTime());
        assertTrue(clock.advanceToNext());
        assertEquals(Instant.EPOCH.plusNanos(100), clock.instant());
        assertFalse(clock.advanceToNext(), "both have left");
        fast.join();
        slow.join();
        assertEquals(List.of("a20", "a40", "b50", "a60", "b100"), List.copyOf(seen));
    }

    @Test
    void anActorThatIsWokenRunsBeforeItsMoment() throws InterruptedException {
        final Thread actor =
                Thread.ofPlatform()
                        .daemon()
                        .start(
                                () -> {
                                    clock.parkUntil(this, SimClock.NEVER);
                                    seen.add("woken at " + clock.nanoTime());
                                    clock.leave();
                                });
        Eventually.holds(() -> actor.getState() == Thread.State.WAITING);
        clock.advance(7);
        actor.interrupt();
        actor.join();
        assertEquals(List.of("woken at 7"), List.copyOf(seen));
    }
}
