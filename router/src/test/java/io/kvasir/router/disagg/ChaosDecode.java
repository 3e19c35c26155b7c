package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.List;

/** A decode engine in memory: fetches blocks or computes the prompt itself, then answers. */
final class ChaosDecode {
    private final ChaosWorld world;
    private final String name;
    private final List<Call> running = new ArrayList<>();
    private boolean alive = true;

    /** What becomes of a decode. */
    interface Listener {
        /** It was not looked at. */
        void unsent(String kind);

        /** The first byte of the answer. */
        void started();

        /**
         * The answer is complete.
         *
         * @param prompt that the answer is of; -1 for another's
         */
        void done(int prompt);

        void failed(String kind);
    }

    /** One request. */
    final class Call {
        private final int prompt;
        private final ChaosPrefill.Blocks blocks;
        private final ChaosPrefill.Room room;
        private final Listener listener;
        private final long latencyMs = world.drawMs(0, 100);
        private boolean aborted;

        private Call(
                int prompt, ChaosPrefill.Blocks blocks, ChaosPrefill.Room room, Listener listener) {
            this.prompt = prompt;
            this.blocks = blocks;
            this.room = room;
            this.listener = listener;
            world.time.afterMs(latencyMs, this::arrive);
        }

        private void arrive() {
            if (aborted) {
                return;
            }
            if (!alive) {
                reply(() -> listener.unsent("connect"));
                return;
            }
            if (world.chance(8)) {
                reply(() -> listener.unsent("busy"));
                return;
            }
            running.add(this);
            final int fate = world.random.nextInt(100);
            if (fate < 5) {
                fail("status");
            } else if (fate >= 8) { // else it never answers
                final long ms = fate < 14 ? world.drawMs(5_000, 25_000) : world.drawMs(50, 2_000);
                world.time.afterMs(ms, this::fetch);
            }
        }

        private void fetch() {
            if (!running.contains(this)) {
                return; // aborted, or the engine was killed
            }
            if (room != null) {
                room.meet(this);
            } else if (blocks == null) {
                world.time.afterMs(world.drawMs(500, 3_000), () -> fetched(prompt));
            } else if (blocks.reachable()) {
                fetched(blocks.fetch());
            } else {
                world.time.afterMs(5_000, () -> fail("fetch"));
            }
        }

        /** It has the blocks, whatever they are of. */
        void fetched(int what) {
            final int fate = world.random.nextInt(100);
            if (fate < 12) {
                fail("status");
            } else if (fate >= 16) { // else it stalls
                world.time.afterMs(
                        world.drawMs(50, 1_000),
                        () -> {
                            if (running.contains(this)) {
                                start(what);
                            }
                        });
            }
        }

        private void start(int what) {
            reply(listener::started);
            final int fate = world.random.nextInt(100);
            final long ms = world.drawMs(200, 3_000);
            if (fate < 4) {
                world.time.afterMs(ms, () -> fail("reset"));
            } else if (fate >= 6) { // else it stalls
                world.time.afterMs(ms, () -> finish(what));
            }
        }

        private void finish(int what) {
            if (running.remove(this)) {
                reply(() -> listener.done(what));
            }
        }

        private void fail(String kind) {
            if (running.remove(this)) {
                leaveRoom();
                reply(() -> listener.failed(kind));
            }
        }

        private void leaveRoom() {
            if (room != null) {
                room.leave(this);
            }
        }

        private void reply(Runnable what) {
            world.time.afterMs(latencyMs, what);
        }

        /** Ends it; a message. */
        void abort() {
            world.time.afterMs(
                    latencyMs,
                    () -> {
                        aborted = true;
                        running.remove(this);
                        leaveRoom();
                    });
        }
    }

    ChaosDecode(ChaosWorld world, String name) {
        this.world = world;
        this.name = name;
    }

    /** Sends a request; blocks and room are null where it computes the prompt itself. */
    Call send(int prompt, ChaosPrefill.Blocks blocks, ChaosPrefill.Room room, Listener listener) {
        return new Call(prompt, blocks, room, listener);
    }

    void kill() {
        alive = false;
        List.copyOf(running).forEach(call -> call.fail("reset"));
    }

    void restart() {
        alive = true;
    }

    /** Reports what is left. */
    void check() {
        if (!running.isEmpty()) {
            world.violated(name + " has " + running.size() + " requests");
        }
    }
}
