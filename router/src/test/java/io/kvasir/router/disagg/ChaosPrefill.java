package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * A prefill engine in memory. A prefill that ends holds its blocks until they are fetched, freed by
 * name, or their lease ends. A deaf engine goes on by itself but takes no messages for a while.
 */
final class ChaosPrefill {
    static final long LEASE_MS = 30_000;

    private final ChaosWorld world;
    private final String name;
    private final List<Call> running = new ArrayList<>();
    private final Set<Blocks> held = new LinkedHashSet<>();
    private boolean alive = true;
    private int life = 1;
    private long deafUntilNs;

    /** Blocks of one prompt; what an answer names. */
    final class Blocks {
        private final int prompt;
        private final int itsLife = life;

        Blocks(int prompt) {
            this.prompt = prompt;
        }

        /** Whether there is an engine that has, or had, them: another life has another name. */
        boolean reachable() {
            return alive && itsLife == life;
        }

        /** Reads them, which ends them; the prompt that they are of, or -1 for another's. */
        int fetch() {
            return held.remove(this) ? prompt : -1;
        }

        /** Frees them by name; a message. */
        void free() {
            message(() -> held.remove(this));
        }

        private void hold() {
            held.add(this);
            world.time.afterMs(LEASE_MS, this::endLease);
        }

        private void endLease() {
            whenItHears(
                    () ->
                            world.time.afterMs(
                                    1_000, // after the messages that it had missed
                                    () -> {
                                        if (held.remove(this)) {
                                            world.violated(
                                                    "the lease of prompt " + prompt + " ended");
                                        }
                                    }));
        }
    }

    /** What becomes of a prefill. */
    interface Listener {
        /**
         * The prompt is computed.
         *
         * @param blocks null where the prefill left none
         */
        void answered(Blocks blocks);

        void failed(String kind);
    }

    /** A meeting of a prefill with a decode. */
    static final class Room {
        private Call ready;
        private ChaosDecode.Call meeting;

        /** The decode worker is there: it gets the blocks once they are. */
        void meet(ChaosDecode.Call decode) {
            meeting = decode;
            exchange();
        }

        /** The decode worker has left. */
        void leave(ChaosDecode.Call decode) {
            if (meeting == decode) {
                meeting = null;
            }
        }

        private void exchange() {
            if (ready != null && meeting != null) {
                final Call call = ready;
                final ChaosDecode.Call decode = meeting;
                ready = null;
                meeting = null;
                decode.fetched(call.met());
            }
        }
    }

    /** One request. */
    final class Call {
        private final int prompt;
        private final Room room; // null where the answer names the blocks
        private final Listener listener;
        private final long latencyMs = world.drawMs(0, 100);
        private Blocks waiting; // in a room
        private boolean aborted;

        private Call(int prompt, Room room, Listener listener) {
            this.prompt = prompt;
            this.room = room;
            this.listener = listener;
            world.time.afterMs(latencyMs, this::arrive);
        }

        private void arrive() {
            if (aborted) {
                return;
            }
            if (!alive) {
                fail("refused");
            } else if (world.chance(3)) {
                fail("busy");
            } else {
                running.add(this);
                final int fate = world.random.nextInt(100);
                if (fate < 5) {
                    return; // it never answers
                }
                final long ms = fate < 10 ? world.drawMs(8_000, 25_000) : world.drawMs(50, 4_000);
                world.time.afterMs(ms, () -> whenItHears(this::complete));
            }
        }

        private void complete() {
            if (!running.contains(this)) {
                return; // aborted, or the engine was killed
            }
            if (room != null) {
                waiting = new Blocks(prompt);
                waiting.hold();
                room.ready = this;
                room.exchange();
            } else if (world.chance(5)) {
                answer(null);
            } else {
                final Blocks blocks = new Blocks(prompt);
                blocks.hold();
                answer(blocks);
            }
        }

        private int met() {
            answer(null);
            return waiting.fetch();
        }

        private void answer(Blocks blocks) {
            running.remove(this);
            world.time.afterMs(latencyMs, () -> listener.answered(blocks));
        }

        private void fail(String kind) {
            running.remove(this);
            world.time.afterMs(latencyMs, () -> listener.failed(kind));
        }

        /** Ends it unless it has answered; a message. */
        void abort() {
            world.time.afterMs(
                    latencyMs,
                    () ->
                            whenItHears(
                                    () -> {
                                        aborted = true;
                                        if (running.remove(this) && waiting != null) {
                                            held.remove(waiting);
                                            room.ready = null;
                                        }
                                    }));
        }
    }

    ChaosPrefill(ChaosWorld world, String name) {
        this.world = world;
        this.name = name;
    }

    /** Sends a prompt. */
    Call send(int prompt, Room room, Listener listener) {
        return new Call(prompt, room, listener);
    }

    void kill() {
        alive = false;
        life++;
        deafUntilNs = 0;
        held.clear();
        for (Call call : List.copyOf(running)) {
            if (call.room != null) {
                call.room.ready = null;
            }
            call.fail("reset");
        }
    }

    void restart() {
        alive = true;
    }

    void deafForMs(long ms) {
        deafUntilNs = Math.max(deafUntilNs, world.time.nowNs() + ms * 1_000_000);
    }

    private void message(Runnable what) {
        world.time.afterMs(world.drawMs(0, 100), () -> whenItHears(what));
    }

    private void whenItHears(Runnable what) {
        if (world.time.nowNs() < deafUntilNs) {
            world.time.after(deafUntilNs - world.time.nowNs(), () -> whenItHears(what));
        } else {
            what.run();
        }
    }

    /** Reports what is left. */
    void check() {
        if (!running.isEmpty() || !held.isEmpty()) {
            world.violated(
                    name
                            + " has "
                            + running.size()
                            + " requests, "
                            + held.size()
                            + " held prompts");
        }
    }
}
