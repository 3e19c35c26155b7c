package io.kvasir.cli.load;

import io.kvasir.sim.config.SimClock;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * Plays a trace open loop: every request is sent at its own time, whatever became of the others,
 * and its latency counts from that time, by the clock of its client.
 */
public final class TraceDriver {
    private static final String PATH = "/v1/completions";
    private static final double NS_PER_MS = 1e6;
    private static final int BODIES_AHEAD = 64;

    private final LoadClient client;
    private final SimClock clock;
    private final TracePrompts prompts;
    private final RunStats stats;
    private final double speedUp;
    private final int maxOutput;

    /**
     * A driver for one run.
     *
     * @param speedUp trace time ÷ wall time
     * @param maxOutput most tokens to generate per request
     */
    public TraceDriver(
            LoadClient client,
            TracePrompts prompts,
            RunStats stats,
            double speedUp,
            int maxOutput) {
        this.client = client;
        this.clock = client.clock();
        this.prompts = prompts;
        this.stats = stats;
        this.speedUp = speedUp;
        this.maxOutput = maxOutput;
    }

    /**
     * Sends all requests on the calling thread and waits for the last answer.
     *
     * @return time from the first arrival to the last answer in ns
     * @throws InterruptedException if the thread is interrupted: nothing more is sent, and answers
     *     are not waited for
     */
    public long play(List<MooncakeTrace.Request> requests) throws InterruptedException {
        final List<CompletableFuture<Void>> running = new ArrayList<>(requests.size());
        final BlockingQueue<byte[]> bodies = new ArrayBlockingQueue<>(BODIES_AHEAD);
        final Thread writer =
                Thread.ofPlatform().name("bodies").start(() -> write(requests, bodies));
        try {
            final long startMs = requests.getFirst().timestampMs();
            final long startNs = clock.nanoTime();
            for (MooncakeTrace.Request request : requests) {
                final byte[] body = bodies.take();
                final double dueMs = (request.timestampMs() - startMs) / speedUp;
                final long dueNs = startNs + Math.round(dueMs * NS_PER_MS);
                clock.sleepUntil(dueNs);
                running.add(client.send(PATH, body, dueNs, false).thenAccept(stats::record));
            }
            clock.leave(); // the answers are made by others
            CompletableFuture.allOf(running.toArray(CompletableFuture[]::new)).get();
            return clock.nanoTime() - startNs;
        } catch (ExecutionException e) {
            throw new IllegalStateException("an answer could not be counted", e.getCause());
        } finally {
            clock.leave();
            writer.interrupt();
        }
    }

    /** Bodies are written ahead, so that requests due at one moment are not sent one body apart. */
    private void write(List<MooncakeTrace.Request> requests, BlockingQueue<byte[]> bodies) {
        try {
            for (MooncakeTrace.Request request : requests) {
                bodies.put(prompts.body(request, Math.min(request.outputLength(), maxOutput)));
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
