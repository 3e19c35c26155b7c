package io.kvasir.sim;

import io.kvasir.sim.batch.Completion;
import io.kvasir.sim.batch.Gate;
import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.NoCarrier;
import io.kvasir.sim.batch.RankScheduler;
import io.kvasir.sim.batch.SimRequest;
import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimRole;
import io.kvasir.sim.events.Labels;
import io.kvasir.sim.state.SimState;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * A simulated engine of one rank whose time is data: no thread, no socket, no clock. Scheduler,
 * block pool, block names and event messages are those of {@link SimEngine}; what a run does
 * depends on its calls alone.
 *
 * <p>The caller moves the time: it calls {@link #advance} at each moment that the last call
 * returned, and after each {@link #submit}. Times never go back. One thread.
 */
public final class SteppedEngine {
    /** What {@link #advance} returns where nothing is to be done. */
    public static final long IDLE = RankScheduler.NOTHING_TO_DO;

    /** Where the event message of a step goes when the step ends. */
    @FunctionalInterface
    public interface Messages {
        /**
         * Takes a message.
         *
         * @param sequence its number, from 0
         * @param payload the batch, as vLLM writes it; the receiver's
         */
        void message(long sequence, byte[] payload);
    }

    /** How far a request is; called at the end of a step in which it got on. */
    @FunctionalInterface
    public interface Progress {
        /**
         * Takes what is known of a request now.
         *
         * @param cachedTokens prompt tokens that were in the cache when it was admitted
         * @param generated output tokens so far; 0 between its admission and its first token
         * @param finished whether it was the last one
         */
        void at(int cachedTokens, int generated, boolean finished);
    }

    private record Open(SimRequest request, Progress progress) {}

    private final SimConfig config;
    private final BlockNamer namer;
    private final Gate gate = new Gate(); // one for all: no thread waits at it
    private final List<Gate> touched = new ArrayList<>();
    private final List<Open> open = new ArrayList<>();
    private final RankScheduler rank;
    private long nowNs;

    /**
     * Makes an idle engine with an empty cache.
     *
     * @param config sizes and rates; ports, ranks and hand-offs of it mean nothing here
     * @param messages takes the events
     * @throws IllegalArgumentException if the engine is to share its work with others
     */
    public SteppedEngine(SimConfig config, Messages messages) {
        if (config.handoff().role() != SimRole.BOTH) {
            throw new IllegalArgumentException(
                    "handoff role="
                            + config.handoff().role()
                            + ": an engine without sockets hands nothing over, use BOTH");
        }
        this.config = config;
        namer = new BlockNamer(0, config.seed(), config.blockSize());
        rank =
                new RankScheduler(
                        0,
                        config,
                        () -> Instant.EPOCH.plusNanos(nowNs),
                        touched,
                        NoCarrier.INSTANCE,
                        new InjectedFaults(config.handoff()));
        rank.begin(
                0,
                (_, sequence, payload, lost) -> {
                    if (!lost) {
                        messages.message(sequence, payload);
                    }
                });
    }

    /**
     * Brings a request in, which arrives at a moment. Nothing is reported of it before the next
     * {@link #advance}.
     *
     * @param prompt token ids, at least one; not changed
     * @param outputTokens tokens to generate, at least 1
     * @param timeNs now
     * @param progress takes how far it is
     * @throws IllegalArgumentException if it can never run: it is empty, or does not fit the cache
     */
    public void submit(int[] prompt, int outputTokens, long timeNs, Progress progress) {
        final long needed = (long) prompt.length + outputTokens;
        final long most = (long) config.blocks() * config.blockSize();
        if (prompt.length < 1 || outputTokens < 1 || needed > most) {
            throw new IllegalArgumentException(
                    "a request of prompt="
                            + prompt.length
                            + " and output="
                            + outputTokens
                            + " tokens cannot run in blocks="
                            + config.blocks()
                            + " of "
                            + config.blockSize()
                            + " tokens; it needs both, and room for them");
        }
        final Completion script =
                Completion.of(
                        prompt,
                        0,
                        new Completion.Limits(
                                outputTokens, 0, -1, outputTokens, List.of(), List.of(), false));
        final SimRequest request = new SimRequest(script, namer, Labels.NONE, false, gate);
        request.arrivalNs(timeNs);
        open.add(new Open(request, progress));
        rank.submit(request);
    }

    /**
     * Ends and begins steps up to a moment, and reports the requests that got on.
     *
     * @param timeNs now; not beyond what the last call returned, or several steps are reported at
     *     once
     * @return when to call again; {@link #IDLE} if nothing runs
     */
    public long advance(long timeNs) {
        nowNs = timeNs;
        final long next = rank.advance(timeNs);
        if (!touched.isEmpty()) {
            touched.clear();
            gate.unmark();
            tell();
        }
        return next;
    }

    private void tell() {
        for (Iterator<Open> all = open.iterator(); all.hasNext(); ) {
            final Open one = all.next();
            final SimRequest request = one.request;
            if (request.counted()) {
                final boolean finished = request.phase() == SimRequest.Phase.FINISHED;
                if (finished) {
                    all.remove();
                }
                one.progress.at(request.cachedTokens(), request.generated(), finished);
            }
        }
    }

    /**
     * Names the full blocks of a prompt as this engine does; engines with equal seeds name them
     * alike.
     *
     * @param prompt token ids; not changed
     * @return one name per block that can be hit: the last token is computed in any case
     */
    public long[] names(int[] prompt) {
        return namer.names(prompt, Math.max(0, prompt.length - 1), null, null);
    }

    /**
     * How much of a prompt is in the cache now.
     *
     * @param names as of {@link #names}
     * @return leading blocks
     */
    public int cachedBlocks(long[] names) {
        return rank.cachedBlocks(names);
    }

    /**
     * What is left to prefill of the requests that are here.
     *
     * @return tokens; of those that wait, less what is cached of them now
     */
    public long tokensToPrefill() {
        return rank.tokensToPrefill();
    }

    /**
     * Visits the names that would be lost if blocks were taken now.
     *
     * @param blocks how many
     * @param visitor takes each name
     */
    public void forEachNextEvicted(int blocks, LongConsumer visitor) {
        rank.forEachNextEvicted(blocks, visitor);
    }

    /**
     * What the engine holds and does.
     *
     * @return as of the last {@link #advance}
     */
    public SimState state() {
        return rank.state();
    }
}
