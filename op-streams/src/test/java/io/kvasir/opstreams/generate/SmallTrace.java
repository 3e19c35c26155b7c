package io.kvasir.opstreams.generate;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A trace of three conversations that grow turn by turn, and streams made from it. */
public final class SmallTrace {
    /** Prompt tokens per hash id. */
    public static final int TRACE_BLOCK = 64;

    private static final int CONVERSATIONS = 3;

    private SmallTrace() {}

    /** The first requests of the trace. */
    public static List<TraceRequest> requests(int count) {
        final List<TraceRequest> requests = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final int conversation = i % CONVERSATIONS;
            final long[] ids = new long[i / CONVERSATIONS + 2];
            ids[0] = conversation;
            for (int turn = 1; turn < ids.length; turn++) {
                ids[turn] = 100L * conversation + turn;
            }
            requests.add(
                    new TraceRequest(
                            i * 40.0,
                            ids.length * TRACE_BLOCK - i * 7 % TRACE_BLOCK,
                            20 + i * 5,
                            ids));
        }
        return requests;
    }

    /** Options that make workers with small, busy caches. */
    public static GeneratorOptions options(int workers, int capacity, boolean salted) {
        return new GeneratorOptions(
                workers, capacity, 16, TRACE_BLOCK, 2, 1, 1000, 20000, 15, 64, true, 1, 7, salted);
    }

    /** Writes a stream of a few hundred events. */
    public static StreamGenerator.Summary write(Path out, boolean salted) throws IOException {
        return StreamGenerator.generate(requests(90), options(3, 200, salted), out);
    }
}
