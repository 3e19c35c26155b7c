package io.kvasir.opstreams.kvops;

import io.kvasir.core.hash.BlockHasher;

import org.agrona.collections.Long2LongHashMap;

import java.io.IOException;
import java.nio.file.Path;

/**
 * The most that a stream's workers hold at any moment: what an index has to have room for.
 *
 * @param pairs (worker, block) pairs
 * @param blocks distinct blocks, however many workers hold them
 * @param lastPairs pairs held at the end
 */
public record LiveMaximum(long pairs, long blocks, long lastPairs) {
    /**
     * Finds the maximum by following what each worker holds.
     *
     * @throws KvopsFormatException if the stream is not well-formed
     * @throws IOException if it cannot be read
     */
    public static LiveMaximum of(Path path) throws IOException {
        try (KvopsFile file = KvopsFile.open(path)) {
            final HeldRuns holdings = new HeldRuns(file.header());
            final KvopsCursor cursor = file.cursor();
            while (cursor.next()) {
                holdings.apply(cursor);
            }
            return new LiveMaximum(holdings.maxPairs, holdings.maxBlocks, holdings.pairs);
        }
    }

    /**
     * A part of it, for an index that has less room than the stream needs.
     *
     * @param room 1 = all of it; above 0
     */
    LiveMaximum times(double room) {
        return new LiveMaximum(
                (long) Math.ceil(pairs * room), (long) Math.ceil(blocks * room), lastPairs);
    }

    /** What each worker holds, as far as numbers go: 64-bit hashes stand for pairs and blocks. */
    private static final class HeldRuns {
        private static final long ABSENT = 0x5555_AAAA_0F0F_3C3CL; // no hash in practice
        private static final int INITIAL = 1 << 16;
        private static final float LOAD = 0.6f;

        private final boolean counted;
        private final Long2LongHashMap[] sequenceOfName; // by worker
        private final Long2LongHashMap holders = map(INITIAL);
        private final Long2LongHashMap furtherCopies = map(16);
        private long pairs;
        private long maxPairs;
        private long maxBlocks;

        HeldRuns(KvopsHeader header) {
            counted = header.has(KvopsHeader.COUNTED_COPIES);
            sequenceOfName = new Long2LongHashMap[header.workers()];
            for (int i = 0; i < sequenceOfName.length; i++) {
                sequenceOfName[i] = map(16);
            }
        }

        private static Long2LongHashMap map(int capacity) {
            return new Long2LongHashMap(capacity, LOAD, ABSENT);
        }

        void apply(KvopsCursor event) {
            switch (event.op()) {
                case KvopsDescriptor.STORED -> store(event);
                case KvopsDescriptor.REMOVED -> {
                    for (int i = 0; i < event.count(); i++) {
                        remove(event.worker(), event.name(i));
                    }
                }
                case KvopsDescriptor.CLEARED -> clear(event.worker());
                default -> {} // changes nothing that is held
            }
        }

        private void store(KvopsCursor event) {
            final Long2LongHashMap names = sequenceOfName[event.worker()];
            long sequence = event.hasParent() ? names.get(event.a()) : ABSENT;
            if (event.hasParent() && sequence == ABSENT) {
                return; // refused by every index
            }
            for (int i = 0; i < event.count(); i++) {
                final long local = event.localHash(i);
                sequence =
                        i == 0 && !event.hasParent()
                                ? local
                                : BlockHasher.nextSequenceHash(sequence, local);
                hold(event.worker(), event.name(i), sequence);
            }
            maxPairs = Math.max(maxPairs, pairs);
            maxBlocks = Math.max(maxBlocks, holders.size());
        }

        private void hold(int worker, long name, long sequence) {
            final Long2LongHashMap names = sequenceOfName[worker];
            final long known = names.get(name);
            if (known == sequence) {
                if (counted) {
                    final long copies = furtherCopies.get(pair(worker, name));
                    furtherCopies.put(pair(worker, name), copies == ABSENT ? 1 : copies + 1);
                }
                return;
            }
            if (known != ABSENT) {
                letGo(worker, name, known);
            }
            names.put(name, sequence);
            final long others = holders.get(sequence);
            holders.put(sequence, others == ABSENT ? 1 : others + 1);
            pairs++;
        }

        private void remove(int worker, long name) {
            final long sequence = sequenceOfName[worker].get(name);
            if (sequence == ABSENT) {
                return;
            }
            final long copies = counted ? furtherCopies.get(pair(worker, name)) : ABSENT;
            if (copies == ABSENT) {
                letGo(worker, name, sequence);
            } else if (copies == 1) {
                furtherCopies.remove(pair(worker, name));
            } else {
                furtherCopies.put(pair(worker, name), copies - 1);
            }
        }

        private void letGo(int worker, long name, long sequence) {
            sequenceOfName[worker].remove(name);
            furtherCopies.remove(pair(worker, name));
            forget(sequence);
        }

        private void forget(long sequence) {
            final long left = holders.get(sequence) - 1;
            if (left == 0) {
                holders.remove(sequence);
            } else {
                holders.put(sequence, left);
            }
            pairs--;
        }

        private void clear(int worker) {
            sequenceOfName[worker].forEachLong(
                    (name, sequence) -> {
                        furtherCopies.remove(pair(worker, name));
                        forget(sequence);
                    });
            sequenceOfName[worker] = map(16);
        }

        private static long pair(int worker, long name) {
            return AnswerChecksum.mix(name ^ AnswerChecksum.mix(worker));
        }
    }
}
