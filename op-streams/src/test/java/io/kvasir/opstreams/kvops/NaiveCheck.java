package io.kvasir.opstreams.kvops;

import io.kvasir.core.hash.BlockHasher;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Follows a stream with plain maps and asks every query of them: per worker, what each name stands
 * for, and how many names stand for each block, which is identified by all local hashes up to it.
 *
 * @param queries queries of the stream
 * @param wrong queries whose checksum is not the one computed here
 * @param answered queries for which some worker held a block
 * @param unknownParents stores behind a block that the worker did not hold
 */
public record NaiveCheck(long queries, long wrong, long answered, long unknownParents) {
    /** Checks a stream without counted copies. */
    public static NaiveCheck of(Path stream) throws IOException {
        try (KvopsFile file = KvopsFile.open(stream)) {
            final List<Worker> workers = new ArrayList<>();
            for (int i = 0; i < file.header().workers(); i++) {
                workers.add(new Worker());
            }
            long queries = 0;
            long wrong = 0;
            long answered = 0;
            long unknownParents = 0;
            final KvopsCursor cursor = file.cursor();
            while (cursor.next()) {
                switch (cursor.op()) {
                    case KvopsDescriptor.QUERY -> {
                        final long sum = checksum(workers, cursor.localHashes());
                        queries++;
                        wrong += sum == cursor.a() ? 0 : 1;
                        answered += sum == 0 ? 0 : 1;
                    }
                    case KvopsDescriptor.STORED ->
                            unknownParents += workers.get(cursor.worker()).store(cursor) ? 0 : 1;
                    case KvopsDescriptor.REMOVED -> {
                        for (long name : cursor.names()) {
                            workers.get(cursor.worker()).remove(name);
                        }
                    }
                    case KvopsDescriptor.CLEARED -> workers.set(cursor.worker(), new Worker());
                    default -> {} // of requests
                }
            }
            return new NaiveCheck(queries, wrong, answered, unknownParents);
        }
    }

    private static long checksum(List<Worker> workers, long[] prompt) {
        final long[] path = new long[prompt.length];
        BlockHasher.sequenceHashes(prompt, prompt.length, path);
        long sum = 0;
        for (int w = 0; w < workers.size(); w++) {
            int depth = 0;
            while (depth < path.length && workers.get(w).names.containsKey(path[depth])) {
                depth++;
            }
            sum += AnswerChecksum.of(w, depth);
        }
        return sum;
    }

    private static final class Worker {
        final Map<Long, Long> blockOf = new HashMap<>(); // by name
        final Map<Long, Integer> names = new HashMap<>(); // by block

        boolean store(KvopsCursor store) {
            Long block = null;
            if (store.hasParent()) {
                block = blockOf.get(store.a());
                if (block == null) {
                    return false;
                }
            }
            for (int i = 0; i < store.count(); i++) {
                final long local = store.localHash(i);
                block = block == null ? local : BlockHasher.nextSequenceHash(block, local);
                remove(store.name(i));
                blockOf.put(store.name(i), block);
                names.merge(block, 1, Integer::sum);
            }
            return true;
        }

        void remove(long name) {
            final Long block = blockOf.remove(name);
            if (block != null) {
                names.computeIfPresent(block, (b, count) -> count == 1 ? null : count - 1);
            }
        }
    }
}
