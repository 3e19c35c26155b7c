package io.kvasir.gateway.upstream;

import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.prompt.chat.PromptRules;

import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;

/**
 * What the registered servers have said of their model, all together. Counted: a server that
 * changes costs as much as one server. One thread at a time.
 */
final class LearnedModels {
    private final Map<Upstream, Said> counted = new HashMap<>();
    private final Map<PromptRules, Integer> byRules = new EnumMap<>(PromptRules.class);
    private final TreeMap<Integer, Integer> byLength = new TreeMap<>(); // of the main pool

    /** What a server had said when it was counted last. */
    private record Said(PromptRules rulesOrNull, int maxModelLength) {}

    /**
     * What all have said.
     *
     * @param promptRules SGLang's where servers are known to be that, and none to be another engine
     * @param maxModelLength of the worker of the main pool that takes most; unknown until all have
     *     said it
     */
    record Together(PromptRules promptRules, int maxModelLength) {
        static final Together NOTHING = new Together(PromptRules.VLLM, UsageReader.UNKNOWN);
    }

    /** Begins to count a server. */
    void added(Upstream upstream) {
        final Said now = new Said(upstream.promptRules(), upstream.maxModelLength());
        count(upstream, counted.put(upstream, now), now);
    }

    /** Counts a server anew; one that was never added, or was removed, counts nothing. */
    void changed(Upstream upstream) {
        if (counted.containsKey(upstream)) {
            added(upstream);
        }
    }

    /** Counts a server no more. */
    void removed(Upstream upstream) {
        count(upstream, counted.remove(upstream), null);
    }

    private void count(Upstream upstream, Said beforeOrNull, Said nowOrNull) {
        add(upstream, beforeOrNull, -1);
        add(upstream, nowOrNull, 1);
    }

    private void add(Upstream upstream, Said saidOrNull, int more) {
        if (saidOrNull == null) {
            return;
        }
        if (saidOrNull.rulesOrNull != null) {
            add(byRules, saidOrNull.rulesOrNull, more);
        }
        if (upstream.pool() == WorkerPool.MAIN) {
            add(byLength, saidOrNull.maxModelLength, more);
        }
    }

    private static <K> void add(Map<K, Integer> counts, K key, int more) {
        counts.merge(key, more, (before, change) -> before + change == 0 ? null : before + change);
    }

    /** What those that are counted have said. */
    Together together() {
        return new Together(
                byRules.containsKey(PromptRules.SGLANG) && !byRules.containsKey(PromptRules.VLLM)
                        ? PromptRules.SGLANG
                        : PromptRules.VLLM,
                byLength.isEmpty() || byLength.containsKey(UsageReader.UNKNOWN)
                        ? UsageReader.UNKNOWN
                        : Math.max(UsageReader.UNKNOWN, byLength.lastKey()));
    }
}
