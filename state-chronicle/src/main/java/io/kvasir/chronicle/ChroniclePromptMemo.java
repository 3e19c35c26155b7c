package io.kvasir.chronicle;

import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoConfig;
import io.kvasir.prompt.memo.PromptMemoCounts;

import java.io.IOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.time.Clock;
import java.time.InstantSource;
import java.util.concurrent.atomic.LongAdder;

/**
 * Tokens of prompts in a Chronicle Map that the processes of one user on one host share.
 *
 * <p>The map has as many cells as there may be entries, numbered from 0; a part of a section may be
 * in either of two cells, which its key says. A new one takes the cell that is free or out of date,
 * else the one with the older entry: so nothing is ever searched for room, and full is the usual
 * state. Keys are SHA-256 hashes, compared whole, and entries have checksums.
 */
public final class ChroniclePromptMemo implements PromptMemo {
    private static final int VERSION = 1;
    private static final int CELL_BYTES = Long.BYTES;
    private static final int CHOICES = 2;
    private static final long GOLDEN = 0x9E3779B97F4A7C15L; // spreads the parts of a section
    private static final VarHandle LONG =
            MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private final SharedMap map;
    private final int entries;
    private final long ttlMs;
    private final InstantSource clock;
    private final LongAdder hits = new LongAdder();
    private final LongAdder misses = new LongAdder();
    private final LongAdder evictions = new LongAdder();

    /**
     * Opens a memo, or makes it; some seconds the first time in a process.
     *
     * @param config folder, size and age of entries
     * @throws IOException if it cannot be used; the message says what to change
     */
    public ChroniclePromptMemo(PromptMemoConfig config) throws IOException {
        this(config, Clock.systemUTC());
    }

    ChroniclePromptMemo(PromptMemoConfig config, InstantSource clock) throws IOException {
        this.entries = config.entries();
        this.ttlMs = config.ttl().toMillis();
        this.clock = clock;
        this.map = new SharedMap(config.folder(), layout(entries));
    }

    /** The map of a memo. */
    static MapLayout layout(int entries) {
        return new MapLayout("prompts", VERSION, entries, CELL_BYTES, MemoEntry.MOST_BYTES);
    }

    @Override
    public int[] get(byte[] key) {
        final long nowMs = clock.millis();
        final byte[] first = find(key, 0, nowMs);
        int[] tokens = null;
        if (first != null) {
            tokens = new int[MemoEntry.total(first)];
            MemoEntry.copy(first, 0, tokens);
            final int parts = MemoEntry.parts(tokens.length);
            for (int part = 1; part < parts && tokens != null; part++) {
                final byte[] entry = find(key, part, nowMs);
                if (entry == null || MemoEntry.total(entry) != tokens.length) {
                    tokens = null;
                } else {
                    MemoEntry.copy(entry, part, tokens);
                }
            }
        }
        (tokens == null ? misses : hits).increment();
        return tokens;
    }

    private byte[] find(byte[] key, int part, long nowMs) {
        for (int choice = 0; choice < CHOICES; choice++) {
            final byte[] entry = map.get(cell(key, part, choice));
            if (entry == null) {
                continue;
            }
            if (!MemoEntry.isWhole(entry)) {
                map.countError();
            } else if (MemoEntry.is(entry, key, part) && !isOld(entry, nowMs)) {
                return entry;
            }
        }
        return null;
    }

    private boolean isOld(byte[] entry, long nowMs) {
        return nowMs - MemoEntry.stampMs(entry) >= ttlMs;
    }

    @Override
    public void put(byte[] key, int[] tokens) {
        final long nowMs = clock.millis();
        final int parts = MemoEntry.parts(tokens.length);
        if (parts > entries) {
            map.countError(); // it would push itself out
            return;
        }
        for (int part = 0; part < parts; part++) {
            put(key, part, MemoEntry.of(key, part, tokens, nowMs), nowMs);
        }
    }

    /** Puts an entry where it is already, else where less is lost. */
    private void put(byte[] key, int part, byte[] entry, long nowMs) {
        final byte[] one = cell(key, part, 0);
        final byte[] other = cell(key, part, 1);
        final long firstStamp = worth(map.get(one), key, part, nowMs);
        final long secondStamp = worth(map.get(other), key, part, nowMs);
        map.update(
                firstStamp <= secondStamp ? one : other,
                old -> {
                    // what is there now may be another process's; it counts, the choice stays
                    if (worth(old, key, part, nowMs) > 0) {
                        evictions.increment();
                    }
                    return entry;
                });
    }

    /** When the entry was put that a cell would lose; at most 0 where it loses none. */
    private long worth(byte[] held, byte[] key, int part, long nowMs) {
        if (held == null || !MemoEntry.isWhole(held) || isOld(held, nowMs)) {
            return 0;
        }
        return MemoEntry.is(held, key, part) ? -1 : Math.max(1, MemoEntry.stampMs(held));
    }

    /** The key of a cell in the map. */
    private byte[] cell(byte[] key, int part, int choice) {
        final long mixed = mix((long) LONG.get(key, choice * Long.BYTES) + part * GOLDEN);
        final byte[] cell = new byte[CELL_BYTES];
        LONG.set(cell, 0, Math.unsignedMultiplyHigh(mixed, entries));
        return cell;
    }

    private static long mix(long value) {
        final long once = (value ^ (value >>> 32)) * 0xD6E8FEB86659FD93L;
        return once ^ (once >>> 32);
    }

    @Override
    public PromptMemoCounts counts() {
        return new PromptMemoCounts(hits.sum(), misses.sum(), evictions.sum(), map.errors());
    }

    @Override
    public void close() {
        map.close();
    }
}
