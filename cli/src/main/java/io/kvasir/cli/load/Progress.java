package io.kvasir.cli.load;

import io.kvasir.cli.console.Measured;
import io.kvasir.cli.console.Terminal;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Shows how a run is going: one line that is rewritten on a terminal, a line now and then
 * elsewhere. Asks {@code state} for its text on a thread of its own until closed, then shows the
 * last state.
 */
public final class Progress implements AutoCloseable {
    private static final Duration TERMINAL_PERIOD = Duration.ofMillis(200);
    private static final Duration PLAIN_PERIOD = Duration.ofSeconds(5);
    private static final double PERCENT = 100;
    private static final String ERASE_REST = "\u001b[K";

    private final CountDownLatch closed = new CountDownLatch(1);
    private final PrintWriter err;
    private final Supplier<String> state;
    private final boolean terminal;
    private final Thread shower;

    Progress(PrintWriter err, Supplier<String> state, boolean terminal) {
        this.err = err;
        this.state = state;
        this.terminal = terminal;
        this.shower = Thread.ofVirtual().name("progress").start(this::showUntilClosed);
    }

    /** Something that takes a while. */
    @FunctionalInterface
    public interface Work<T> {
        /** Does it on the calling thread. */
        T run() throws InterruptedException;
    }

    /** Shows the state while {@code work} runs on the calling thread, and once more after it. */
    public static <T> T during(PrintWriter err, Supplier<String> state, Work<T> work)
            throws InterruptedException {
        final Progress progress = new Progress(err, state, Terminal.isWatched());
        try {
            return work.run();
        } finally {
            progress.close();
        }
    }

    /** The usual state of a run: how far it is and what it has seen so far. */
    public static String line(String name, RunStats stats, int requests) {
        return String.format(
                Locale.ROOT,
                "%-12s %5d/%d requests, %d errors, cache hits %s, TTFT p50 %s",
                name,
                stats.requests(),
                requests,
                stats.errors(),
                Measured.text("%4.1f %%", stats.hitRate() * PERCENT),
                Measured.text("%.0f ms", stats.ttftP50Ms()));
    }

    private void showUntilClosed() {
        final long periodMs = (terminal ? TERMINAL_PERIOD : PLAIN_PERIOD).toMillis();
        try {
            while (!closed.await(periodMs, TimeUnit.MILLISECONDS)) {
                show();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void show() {
        if (terminal) {
            err.print("\r" + state.get() + ERASE_REST);
        } else {
            err.println(state.get());
        }
        err.flush();
    }

    @Override
    public void close() {
        closed.countDown();
        try {
            shower.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        show();
        if (terminal) {
            err.println();
            err.flush();
        }
    }
}
