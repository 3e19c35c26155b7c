package io.kvasir.router.disagg;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * One request with its legs in memory: what a gateway does with HTTP, done with messages of virtual
 * time. It books asynchronously, so every give-up may meet a booking that is yet to come.
 */
final class ChaosRequest implements SplitLegs {
    /** What the legs get wrong on purpose, to see that it is found. */
    enum Defect {
        NONE,
        /** Prefills that are given up are left alone. */
        FREES_NOTHING,
        /** A decode worker that failed is followed by another one with the same parameters. */
        REUSES_PARAMETERS,
        /** Decode workers that are given up are left alone. */
        ABORTS_NOTHING
    }

    static final int PREFILLS = 2;
    static final int DECODES = 3;
    static final long PREFILL_TIMEOUT_MS = 10_000;
    static final long CHOICE_MS = 100;
    static final long FIRST_BYTE_MS = 15_000;
    static final long ANSWER_MS = 10_000;
    static final long ROUND_TRIP_MS = 200;
    static final long GRACE_MS = 2_000;

    /** No request takes longer: each thing that is waited for, as often as it may be. */
    static final long LIMIT_MS =
            PREFILLS * (CHOICE_MS + PREFILL_TIMEOUT_MS + CHOICE_MS)
                    + (PREFILLS + 1) * (DECODES * (CHOICE_MS + ROUND_TRIP_MS) + FIRST_BYTE_MS)
                    + ANSWER_MS;

    private final ChaosWorld world;
    private final ChaosFleet fleet;
    private final int prompt;
    private final Defect defect;
    private final SplitFlow flow;
    private final long startNs;
    private final List<Prefill> prefills = new ArrayList<>();
    private Decode decode; // the current one; null for none
    private int decodesLeft;
    private String outcome;
    private long endNs;

    /** One prefill, from its choice. */
    private final class Prefill implements ChaosPrefill.Listener {
        private final int attempt;
        private final PrefillBlocks blocks = new PrefillBlocks();
        private ChaosFleet.Booking booking; // null before and after
        private ChaosPrefill engine;
        private ChaosPrefill.Room room;
        private ChaosPrefill.Blocks parameters;
        private ChaosPrefill.Call call;
        private boolean givenUp;
        private Runnable limit = () -> {};

        Prefill(int attempt) {
            this.attempt = attempt;
        }

        void chosen(ChaosPrefill worker, boolean meets) {
            booking = fleet.book();
            if (givenUp) {
                over();
                return;
            }
            engine = worker;
            room = meets ? new ChaosPrefill.Room() : null;
            flow.prefillChosen(
                    attempt, meets ? SplitFlow.Path.RENDEZVOUS : SplitFlow.Path.COMPLETED);
        }

        void send() {
            call = engine.send(prompt, room, this);
        }

        @Override
        public void answered(ChaosPrefill.Blocks answer) {
            over();
            parameters = answer;
            if (answer != null) {
                blocks.answered(
                        new PrefillBlocks.Held() {
                            @Override
                            public void fetched() {}

                            @Override
                            public void free() {
                                answer.free();
                            }
                        });
            }
            flow.prefillAnswered(attempt);
        }

        @Override
        public void failed(String kind) {
            over();
            flow.prefillFailed(attempt, kind);
        }

        void fetched() {
            blocks.fetched();
            if (booking != null) {
                limit.run();
                limit = fleet.after(PREFILL_TIMEOUT_MS, this::abort);
            }
        }

        void giveUp() {
            givenUp = true;
            blocks.free();
            if (call == null || booking == null) {
                over();
            } else if (room == null) {
                limit = fleet.after(GRACE_MS, this::abort);
            } else {
                abort();
            }
        }

        /** Its answer may be on the way already: it is listened for. */
        private void abort() {
            over();
            call.abort();
        }

        private void over() {
            limit.run();
            if (booking != null) {
                booking.close();
                booking = null;
            }
        }
    }

    /** One decode, from its choice. */
    private final class Decode implements ChaosDecode.Listener {
        private final int number;
        private final boolean split;
        private ChaosFleet.Booking booking;
        private ChaosDecode engine;
        private ChaosDecode.Call call;
        private boolean over;
        private boolean answers;
        private Runnable limit = () -> {};

        Decode(int number, boolean split) {
            this.number = number;
            this.split = split;
        }

        void chosen(ChaosDecode worker) {
            if (over) {
                return; // given up before anything was booked
            }
            booking = fleet.book();
            engine = worker;
            flow.decodeChosen(number);
        }

        void send() {
            final Prefill prefill = split ? prefills.getLast() : null;
            if (prefill != null && prefill.room != null && prefill.call == null) {
                prefill.send();
            }
            limit = fleet.after(FIRST_BYTE_MS, () -> failed("timeout"));
            call =
                    engine.send(
                            prompt,
                            prefill == null ? null : prefill.parameters,
                            prefill == null ? null : prefill.room,
                            this);
        }

        @Override
        public void unsent(String kind) {
            if (end()) {
                if (--decodesLeft > 0) {
                    flow.decodeUnsent(number);
                } else {
                    flow.decodeFailed(number, new LegFailure(Leg.DECODE, kind, true));
                }
            }
        }

        @Override
        public void started() {
            if (!over) {
                answers = true;
                limit.run();
                limit = fleet.after(ANSWER_MS, () -> failed("timeout"));
                flow.decodeStarted(number);
            }
        }

        @Override
        public void done(int answer) {
            if (end()) {
                ended("answer");
                if (answer != prompt) {
                    world.violated("prompt " + prompt + " got the answer of another");
                }
                flow.decodeDone(number);
            }
        }

        @Override
        public void failed(String kind) {
            if (!end()) {
                return;
            }
            call.abort();
            if (answers) {
                ended("broken off (" + kind + ")");
            } else if (defect == Defect.REUSES_PARAMETERS && split && --decodesLeft > 0) {
                flow.decodeUnsent(number);
                return;
            }
            flow.decodeFailed(number, new LegFailure(Leg.DECODE, kind, world.chance(80)));
        }

        void abort() {
            if (end() && call != null) {
                call.abort();
            }
        }

        private boolean end() {
            if (over) {
                return false;
            }
            over = true;
            limit.run();
            if (booking != null) {
                booking.close();
            }
            return true;
        }
    }

    ChaosRequest(
            ChaosWorld world, ChaosFleet fleet, int prompt, FallbackPolicy policy, Defect defect) {
        this.world = world;
        this.fleet = fleet;
        this.prompt = prompt;
        this.defect = defect;
        this.startNs = world.time.nowNs();
        this.flow =
                new SplitFlow(
                        new SplitFlow.Rules(
                                policy,
                                PREFILLS,
                                TimeUnit.MILLISECONDS.toNanos(PREFILL_TIMEOUT_MS)),
                        this,
                        fleet.deadlines());
    }

    void start() {
        flow.start();
    }

    /** The client has left, or the gateway is cut. */
    void leave(String why) {
        if (outcome == null) {
            ended(why);
            flow.abandoned();
        }
    }

    private void ended(String how) {
        if (outcome != null) {
            world.violated("prompt " + prompt + " ended twice: " + outcome + ", " + how);
        }
        outcome = how;
        endNs = world.time.nowNs();
    }

    @Override
    public void choosePrefill(int attempt) {
        final Prefill prefill = new Prefill(attempt);
        prefills.add(prefill);
        soon(
                () -> {
                    if (world.chance(5)) {
                        flow.notSplit(attempt);
                    } else if (world.chance(4)) {
                        flow.prefillFailed(attempt, "no_worker");
                    } else {
                        fleet.choosePrefill(prefill::chosen);
                    }
                });
    }

    @Override
    public void sendPrefill(int attempt) {
        prefills.get(attempt - 1).send();
    }

    @Override
    public void handOver(int attempt) {
        final Prefill prefill = prefills.get(attempt - 1);
        soon(
                () -> {
                    if (prefill.room == null && prefill.parameters == null) {
                        flow.prefillFailed(attempt, "no_blocks");
                    } else if (prefill.room == null && prompt % 16 == 0) {
                        flow.prefillComplete(attempt);
                    } else {
                        decodesLeft = DECODES;
                        flow.handedOver(attempt);
                    }
                });
    }

    @Override
    public void answer(int attempt) {
        ended("answer");
    }

    @Override
    public void chooseDecode(int number, boolean split) {
        if (!split) {
            decodesLeft = DECODES;
        }
        final Decode chosen = new Decode(number, split);
        decode = chosen;
        soon(
                () -> {
                    if (chosen.over) {
                        return;
                    }
                    if (world.chance(4)) {
                        chosen.end();
                        flow.decodeFailed(number, new LegFailure(Leg.DECODE, "no_worker", true));
                    } else {
                        chosen.chosen(fleet.decodeWorker());
                    }
                });
    }

    @Override
    public void sendDecode() {
        decode.send();
    }

    @Override
    public void blocksFetched() {
        if (flow.isSplit()) {
            prefills.getLast().fetched();
        }
    }

    @Override
    public void abortDecode() {
        if (decode != null && defect != Defect.ABORTS_NOTHING) {
            decode.abort();
        }
    }

    @Override
    public boolean canAnswerAlone() {
        return prompt % 12 != 0;
    }

    @Override
    public void freePrefill(int attempt) {
        if (attempt <= prefills.size() && defect != Defect.FREES_NOTHING) {
            prefills.get(attempt - 1).giveUp();
        }
    }

    @Override
    public void failed(LegFailure failure, SplitEvent next) {
        // the world counts failures by itself
    }

    @Override
    public void report(LegFailure failure) {
        ended("failed: " + failure);
    }

    /** At once, or a little later. */
    private void soon(Runnable what) {
        final long ms = world.chance(50) ? 0 : world.drawMs(0, CHOICE_MS);
        if (ms == 0) {
            what.run();
        } else {
            world.time.afterMs(ms, what);
        }
    }

    boolean hasEnded() {
        return outcome != null;
    }

    String outcome() {
        return outcome;
    }

    /** Reports what is wrong once all is over. */
    void check() {
        if (outcome == null) {
            world.violated("prompt " + prompt + " has no end: " + flow.state());
        } else if (endNs - startNs > TimeUnit.MILLISECONDS.toNanos(LIMIT_MS)) {
            world.violated("prompt " + prompt + " ended late: " + outcome);
        }
        if (!flow.state().isEnd()) {
            world.violated("the flow of prompt " + prompt + " is " + flow.state());
        }
    }
}
