package io.kvasir.router.disagg;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;

/** The engines of a story, and what the gateway has booked and set timers for. */
final class ChaosFleet {
    private final ChaosWorld world;
    private final List<ChaosPrefill> completing; // their answers name the blocks
    private final List<ChaosPrefill> meeting;
    private final List<ChaosDecode> decodes;
    private final VirtualTime.Owner deadlines;
    private int booked;

    /** One booking. */
    final class Booking {
        private boolean open = true;

        private Booking() {
            booked++;
        }

        void close() {
            if (!open) {
                world.violated("a booking was closed twice");
            }
            open = false;
            booked--;
        }
    }

    ChaosFleet(ChaosWorld world) {
        this.world = world;
        this.completing = List.of(new ChaosPrefill(world, "P1"), new ChaosPrefill(world, "P2"));
        this.meeting = List.of(new ChaosPrefill(world, "P3"), new ChaosPrefill(world, "P4"));
        this.decodes =
                List.of(
                        new ChaosDecode(world, "D1"),
                        new ChaosDecode(world, "D2"),
                        new ChaosDecode(world, "D3"));
        this.deadlines = world.time.new Owner();
    }

    /** Has engines be killed and restarted, and not read for a while, in the next minutes. */
    void trouble(long forMs) {
        for (List<ChaosPrefill> engines : List.of(completing, meeting)) {
            for (ChaosPrefill engine : engines) {
                for (int i = world.random.nextInt(4); i > 0; i--) {
                    final long at = world.drawMs(0, forMs);
                    world.time.afterMs(at, engine::kill);
                    world.time.afterMs(at + world.drawMs(0, 10_000), engine::restart);
                }
                for (int i = world.random.nextInt(3); i > 0; i--) {
                    final long ms = world.drawMs(500, 60_000);
                    world.time.afterMs(world.drawMs(0, forMs), () -> engine.deafForMs(ms));
                }
            }
        }
        for (ChaosDecode engine : decodes) {
            for (int i = world.random.nextInt(3); i > 0; i--) {
                final long at = world.drawMs(0, forMs);
                world.time.afterMs(at, engine::kill);
                world.time.afterMs(at + world.drawMs(0, 10_000), engine::restart);
            }
        }
    }

    Booking book() {
        return new Booking();
    }

    void choosePrefill(BiConsumer<ChaosPrefill, Boolean> chosen) {
        final boolean meets = world.chance(40);
        chosen.accept(world.any(meets ? meeting : completing), meets);
    }

    ChaosDecode decodeWorker() {
        return world.any(decodes);
    }

    Deadlines deadlines() {
        return deadlines;
    }

    Runnable after(long delayMs, Runnable action) {
        return deadlines.after(TimeUnit.MILLISECONDS.toNanos(delayMs), action);
    }

    /** Reports what the gateway still holds. */
    void checkGateway() {
        if (booked != 0) {
            world.violated(booked + " bookings are open");
        }
        if (deadlines.open() != 0) {
            world.violated(deadlines.open() + " timers are left");
        }
    }

    /** Reports what engines still hold. */
    void checkEngines() {
        completing.forEach(ChaosPrefill::check);
        meeting.forEach(ChaosPrefill::check);
        decodes.forEach(ChaosDecode::check);
    }
}
