package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.util.Locale;

/**
 * What the initiator asks of the target between transfers.
 *
 * @param task to fill a source or to check a destination
 * @param memory in which pool
 * @param cell which transfer
 * @param seed of its bytes
 */
record TargetCommand(Task task, NixlMemory memory, Cell cell, long seed) {
    /** The answer when it is done; any other says why not. */
    static final String DONE = "done";

    /** The two errands. */
    enum Task {
        FILL,
        VERIFY
    }

    static String requestName(int number) {
        return "request-" + number;
    }

    static String answerName(int number) {
        return "answer-" + number;
    }

    String text() {
        return "%s %s %d %d %d"
                .formatted(
                        task.name().toLowerCase(Locale.ROOT),
                        memory,
                        cell.length(),
                        cell.count(),
                        seed);
    }

    /** Reads {@link #text()}. */
    static TargetCommand parse(String text) {
        final String[] words = text.split(" ", -1);
        return new TargetCommand(
                Task.valueOf(words[0].toUpperCase(Locale.ROOT)),
                NixlMemory.valueOf(words[1]),
                new Cell(Long.parseLong(words[2]), Integer.parseInt(words[3])),
                Long.parseLong(words[4]));
    }

    /** Does it. */
    void run(Pools pools) {
        final Pool pool = pools.of(memory);
        if (cell.bytes() > pool.range().length()) {
            throw new BenchFailure(
                    "%d bytes are more than the target's pool of %d: both ends need the same --bytes"
                            .formatted(cell.bytes(), pool.range().length()));
        }
        if (task == Task.FILL) {
            pool.fill(cell, seed);
        } else {
            pool.verify(cell, seed);
        }
    }
}
