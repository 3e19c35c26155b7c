package io.kvasir.opstreams.cliffs;

import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Tenants of one worker. The first announces the system prompt and its own conversations; each
 * further one announces the same prompt under its own names, a conversation after it, and is
 * evicted after 64 others came. Between them the worker stores 30-block prompts of its own.
 */
final class Tenants {
    private static final int SYSTEM_BLOCKS = 200;
    private static final int CONVERSATION = 10;
    private static final int TENANTS = 2_000;
    private static final int AT_A_TIME = 64;
    private static final int HELD_PROMPTS = 10_000;
    private static final int PROMPT_BLOCKS = 30;

    private Tenants() {}

    static void write(CliffStream out, int workers, double scale) throws IOException {
        final long[] system = out.fresh(SYSTEM_BLOCKS);
        for (int i = 0; i < Cliff.scaled(HELD_PROMPTS, scale, 10); i++) {
            out.store(i % workers, out.fresh(PROMPT_BLOCKS), 1, 0, PROMPT_BLOCKS);
        }
        out.store(0, system, 1, 0, SYSTEM_BLOCKS); // stays, so that the blocks stay held
        final Deque<long[]> present = new ArrayDeque<>();
        final int tenants = Cliff.scaled(TENANTS, scale, 2 * AT_A_TIME);
        for (int tenant = 2; tenant < 2 + tenants; tenant++) {
            if (present.size() == AT_A_TIME) {
                leave(out, present.poll(), tenant - AT_A_TIME);
            }
            final long[] prompt = CliffStream.append(system, out.fresh(CONVERSATION));
            out.store(0, prompt, tenant, 0, SYSTEM_BLOCKS);
            out.storeOneByOne(0, prompt, tenant, SYSTEM_BLOCKS, prompt.length);
            present.add(prompt);
            out.query(prompt);
        }
        out.query(system);
    }

    private static void leave(CliffStream out, long[] prompt, long tenant) throws IOException {
        out.remove(0, prompt, tenant, SYSTEM_BLOCKS, prompt.length);
        out.removeNames(0, CliffStream.names(prompt, tenant), 0, SYSTEM_BLOCKS);
    }
}
