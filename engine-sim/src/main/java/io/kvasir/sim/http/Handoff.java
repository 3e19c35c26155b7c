package io.kvasir.sim.http;

import io.kvasir.sim.batch.Completion;
import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.SimRequest;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;

import java.util.function.IntSupplier;
import java.util.function.Supplier;

/**
 * What requests and answers of one engine say about hand-offs. This one says nothing, as an engine
 * without them. Any thread.
 */
public class Handoff {
    /** What is known of a sequence besides its tokens. */
    record Part(ApiRequest api, int prompt, String name, Supplier<Completion> otherText) {}

    private static final Handoff NONE = new Handoff();

    /**
     * Makes the hand-off of an engine.
     *
     * @param sidePort port at which others pull from this engine, asked when an answer is written
     */
    public static Handoff of(
            SimConfig config, StepLoop loop, InjectedFaults faults, IntSupplier sidePort) {
        if (config.handoff().role() == SimRole.BOTH) {
            return NONE;
        }
        return switch (config.handoff().protocol()) {
            case VLLM -> new VllmShape(config, loop, faults, sidePort);
            case SGLANG -> new SglangShape(config);
            case TRTLLM -> new TrtllmShape(config, loop, faults, sidePort);
        };
    }

    /**
     * Checks a request before anything is done for it.
     *
     * @param prompts how many it has
     * @throws ApiException when the engine refuses it
     */
    void check(ApiRequest api, int prompts) {}

    /** The rank that a request must run on, or -1 for any. */
    int rank(ApiRequest api) {
        return -1;
    }

    /** Whether a request is answered by one token, whatever it asks for. */
    boolean oneToken(ApiRequest api) {
        return false;
    }

    /** Adds what must be pulled before a sequence, and held after it. */
    void attach(SimRequest request, Part part) {}

    /** The value of {@code kv_transfer_params} in an answer, JSON. */
    String parameters(SimRequest request) {
        return "null";
    }

    /** The value of {@code disaggregated_params} in a choice, JSON, or null to leave it out. */
    String choiceParameters(SimRequest request) {
        return null;
    }
}
