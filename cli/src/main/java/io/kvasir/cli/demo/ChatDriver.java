package io.kvasir.cli.demo;

import io.kvasir.cli.load.LoadClient;
import io.kvasir.cli.load.Outcome;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Consumer;

/**
 * Plays a {@link ChatWorkload}: each conversation is a user on a thread of its own who reads the
 * streamed answer to its end, thinks, and asks on.
 */
public final class ChatDriver {
    private static final String PATH = "/v1/chat/completions";
    private static final long NS_PER_MS = 1_000_000;

    private final LoadClient client;
    private final String model;
    private final Consumer<Outcome> outcomes;

    /**
     * Plays through a client that the caller closes, for a model.
     *
     * @param outcomes takes what becomes of each request, on the threads of the users
     */
    public ChatDriver(LoadClient client, String model, Consumer<Outcome> outcomes) {
        this.client = client;
        this.model = model;
        this.outcomes = outcomes;
    }

    /**
     * Plays the whole workload and waits for the last answer. A conversation ends early when a
     * request of it fails.
     *
     * @return real time from the start to the last answer in ns
     * @throws InterruptedException if the thread is interrupted: nothing more is asked, and answers
     *     are not waited for
     */
    public long play(ChatWorkload workload) throws InterruptedException {
        final long startNs = System.nanoTime();
        try (ExecutorService users = Executors.newVirtualThreadPerTaskExecutor()) {
            final List<Future<?>> running = new ArrayList<>();
            for (ChatWorkload.Conversation conversation : workload.conversations()) {
                running.add(
                        users.submit(() -> chat(conversation, workload.shape().turns(), startNs)));
            }
            try {
                for (Future<?> one : running) {
                    one.get();
                }
            } catch (InterruptedException e) {
                users.shutdownNow(); // close would wait for their answers
                throw e;
            }
        } catch (ExecutionException e) {
            throw new IllegalStateException("a conversation broke off", e.getCause());
        }
        return System.nanoTime() - startNs;
    }

    private Void chat(ChatWorkload.Conversation conversation, int turns, long startNs)
            throws InterruptedException, ExecutionException {
        long dueNs = startNs + conversation.startMs() * NS_PER_MS;
        for (int turn = 0; turn < turns; turn++) {
            Thread.sleep(Duration.ofNanos(Math.max(0, dueNs - System.nanoTime())));
            final Outcome outcome =
                    client.send(PATH, conversation.nextRequest(model), dueNs, true).get();
            outcomes.accept(outcome);
            if (outcome.failed()) {
                break;
            }
            conversation.answered(outcome.text());
            dueNs = outcome.doneNs() + conversation.thinkMs() * NS_PER_MS;
        }
        return null;
    }
}
