package io.kvasir.gateway.testing;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.KvBytes;
import io.kvasir.sim.config.PullStage;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.state.HandoffState;
import io.kvasir.sim.state.SimState;
import io.kvasir.testsupport.FreePorts;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * Two prefill and two decode engines of one protocol whose blocks have bytes, and the trouble that
 * they are put to.
 */
public final class SimFleet implements AutoCloseable {
    /** Model of the fleet, blocks of 16 tokens. */
    public static final String MODEL = "m";

    private static final Duration LEASE = Duration.ofSeconds(15);
    private static final int MOST_STALL_MS = 700;

    public final List<SimEngine> prefills;
    public final List<SimEngine> decodes;
    private final List<SimEngine> all = new ArrayList<>();
    private long leaseEnds; // of lives that were ended here
    private int strayPrefills;

    public SimFleet(SimHandoff protocol) {
        prefills = List.of(engine(SimRole.PREFILL, protocol), engine(SimRole.PREFILL, protocol));
        decodes = List.of(engine(SimRole.DECODE, protocol), engine(SimRole.DECODE, protocol));
        all.addAll(prefills);
        all.addAll(decodes);
    }

    private static SimEngine engine(SimRole role, SimHandoff protocol) {
        final int ports = FreePorts.run(3); // the same after a restart
        return SimEngine.start(
                config().eventsPort(ports)
                        .replayPort(ports + 1)
                        .handoff(
                                HandoffConfig.of(role, protocol)
                                        .withSidePort(ports + 2)
                                        .withLease(LEASE)
                                        .withPatience(Duration.ofSeconds(1))
                                        .withStrict(true)
                                        .withBytes(KvBytes.SMALL))
                        .build());
    }

    /** An engine as those of a fleet, which does all of a request. */
    public static SimConfig.Builder config() {
        return SimConfig.builder()
                .model(MODEL)
                .blocks(512)
                .slots(32)
                .prefillTokensPerSecond(200_000)
                .interTokenMillis(1);
    }

    /** How a gateway reaches them. */
    public List<WorkerConfig> workers(SimHandoff protocol) {
        final List<WorkerConfig> workers = new ArrayList<>();
        for (SimEngine engine : all) {
            final boolean isPrefill = prefills.contains(engine);
            workers.add(
                    WorkerConfig.parse(
                            engine.url()
                                    + ",name="
                                    + (isPrefill ? "p" : "d")
                                    + workers.size()
                                    + ",role="
                                    + (isPrefill ? "prefill" : "decode")
                                    + ",handoff="
                                    + protocol.name().toLowerCase(Locale.ROOT)
                                    + (isPrefill && protocol == SimHandoff.SGLANG
                                            ? ",bootstrap=127.0.0.1:" + engine.sidePort()
                                            : "")
                                    + ",events="
                                    + engine.eventsEndpoint(0)
                                    + ",replay="
                                    + engine.replayEndpoint(0)));
        }
        return workers;
    }

    /** Puts one engine to trouble that passes. One thread. */
    public void trouble(Random random) throws InterruptedException {
        final int count = 1 + random.nextInt(3);
        final Duration while_ = Duration.ofMillis(50 + random.nextInt(MOST_STALL_MS));
        final SimEngine prefill = any(random, prefills);
        final SimEngine decode = any(random, decodes);
        final SimEngine any = random.nextBoolean() ? prefill : decode;
        switch (random.nextInt(8)) {
            case 0 -> any.faults().failRequests(random.nextBoolean() ? 500 : 429, count);
            case 1 -> decode.faults().disconnectMidStream(count);
            case 2, 3 -> {
                final HandoffFault fault = any(random, List.of(HandoffFault.values()));
                strayPrefills += leavesBlocks(fault) ? count : 0;
                prefill.faults().handoffs(fault, count);
            }
            case 4 -> any.faults().stall(while_);
            case 5 ->
                    decode.faults()
                            .stallPulls(any(random, List.of(PullStage.values())), while_, count);
            case 6 -> {
                leaseEnds += any.handoffs(0).freedByLeaseEnd();
                any.faults().restart();
            }
            default -> {
                prefill.faults().sidePort(false);
                Thread.sleep(while_);
                prefill.faults().sidePort(true);
            }
        }
    }

    private static <T> T any(Random random, List<T> list) {
        return list.get(random.nextInt(list.size()));
    }

    /** Whether an answer with this fault says nothing of blocks that are held. */
    private static boolean leavesBlocks(HandoffFault fault) {
        return switch (fault) {
            case ANSWERS_WITHOUT_PARAMETERS, ANSWERS_WITH_MALFORMED_PARAMETERS, LEASE_ENDS_EARLY ->
                    true;
            default -> false;
        };
    }

    /** Ends all trouble that has not happened yet. */
    public void peace() {
        for (SimEngine engine : all) {
            engine.faults().failRequests(500, 0);
            engine.faults().disconnectMidStream(0);
            for (HandoffFault fault : HandoffFault.values()) {
                engine.faults().handoffs(fault, 0);
            }
            for (PullStage stage : PullStage.values()) {
                engine.faults().stallPulls(stage, Duration.ZERO, 0);
            }
        }
    }

    /** What engines still hold or do; empty once they are at rest. */
    public List<String> unfinished() {
        final List<String> found = new ArrayList<>();
        for (SimEngine engine : all) {
            final SimState state = engine.state(0);
            final HandoffState handoffs = engine.handoffs(0);
            if (state.running() + state.waiting() + handoffs.heldPrefills() + handoffs.receiving()
                            > 0
                    || state.freeBlocks() != state.blocks()) {
                found.add(engine.config().handoff().role() + " " + state + " " + handoffs);
            }
        }
        return found;
    }

    /** Prefills whose blocks only the end of their lease has freed, as far as is known. */
    public long leaseEnds() {
        return leaseEnds + prefills.stream().mapToLong(e -> e.handoffs(0).freedByLeaseEnd()).sum();
    }

    /** Prefills, at most, whose blocks only their engine can free, by the trouble made. */
    public int strayPrefills() {
        return strayPrefills;
    }

    @Override
    public void close() {
        all.forEach(SimEngine::close);
    }
}
