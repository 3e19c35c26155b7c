package io.kvasir.opstreams.cliffs;

import io.kvasir.opstreams.kvops.KvopsHeader;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;

/** A situation in which an index may stall. Equal seeds and scales give equal bytes. */
public enum Cliff {
    /**
     * Ten engines whose caches hold twice what the index may: conversations behind a system prompt
     * come and go, most blocks one by one. What is refused is announced as evicted later.
     */
    INDEX_LIMIT(10, 0.5, Conversations::atTheLimit),
    /** The same load with room for all of it. */
    INDEX_ROOM(10, 1, Conversations::atTheLimit),
    /** The same engines, full before the index started: it knows none of what they evict. */
    LATE_ATTACH(10, 1, Conversations::lateAttach),
    /**
     * One worker whose engine names blocks by tenant, as SGLang does with cache salts: the same
     * system prompt of 200 blocks under ever other names.
     */
    SALTED_TENANTS(2, 1, Tenants::write),
    /** One-block branches come and go along a prompt of 2,560 blocks that stays. */
    BRANCH_CHURN(2, 1, Branches::write),
    /** 64 workers that generate: each block is an event of its own. */
    BLOCK_BY_BLOCK(64, 1, Decoding::write),
    /**
     * One worker with four million blocks in prompts of 20: removals from the middle, branches from
     * the middle, unknown names, stores after unknown blocks.
     */
    BIG_WORKER(1, 1, BigWorker::write),
    /** A thousand workers take up one system prompt and drop it, again and again. */
    SHARED_DROP(1000, 1, SharedPrompt::write),
    /** A worker of a million blocks announces removals of what it never stored. */
    UNKNOWN_FLOOD(2, 1, UnknownFlood::write);

    private final int workers;
    private final double room;

    @SuppressWarnings("ImmutableEnumChecker") // a method
    private final Content content;

    Cliff(int workers, double room, Content content) {
        this.workers = workers;
        this.room = room;
        this.content = content;
    }

    /** Writes the events and queries of a situation. */
    @FunctionalInterface
    interface Content {
        /**
         * Writes them.
         *
         * @param scale 1 = the size that the situation's description names; fewer blocks below
         */
        void write(CliffStream out, int workers, double scale) throws IOException;
    }

    /** Name on the command line and in results. */
    public String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /** Workers of the stream. */
    public int workers() {
        return workers;
    }

    /** Room of the index as a share of what the workers hold at most. */
    public double room() {
        return room;
    }

    /** The situation of that name, or null. */
    public static Cliff of(String label) {
        for (Cliff cliff : values()) {
            if (cliff.label().equals(label)) {
                return cliff;
            }
        }
        return null;
    }

    /**
     * Writes the stream.
     *
     * @param out file to create or overwrite
     * @param scale 1 = the size that the description names; smaller is quicker
     * @throws IllegalArgumentException if {@code scale} is not within 0..1, 0 excluded
     * @throws IOException if it cannot be written
     */
    public KvopsHeader write(Path out, double scale, long seed) throws IOException {
        if (!(scale > 0) || scale > 1) {
            throw new IllegalArgumentException("scale out of range: value=" + scale + ", 0..1");
        }
        try (CliffStream stream = new CliffStream(out, workers, 0, seed, this != SALTED_TENANTS)) {
            content.write(stream, workers, scale);
            return stream.header();
        }
    }

    /** A number of the description at a scale, at least {@code least}. */
    static int scaled(int number, double scale, int least) {
        return (int) Math.max(least, Math.round(number * scale));
    }
}
