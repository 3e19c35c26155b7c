package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.openai.UsageReader;
import io.kvasir.prompt.chat.PromptRules;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** What servers have said of their model, counted as they change, against all asked at once. */
class LearnedModelsModelTest {
    private static final PromptRules[] RULES = {PromptRules.VLLM, PromptRules.SGLANG, null};

    private final LearnedModels learned = new LearnedModels();
    private final List<Upstream> all = new ArrayList<>();
    private int made;

    private Upstream server(String role) {
        return new Upstream(
                WorkerConfig.parse("http://127.0.0.1:1,name=w" + made + ",role=" + role),
                "test",
                made++,
                null,
                true,
                () -> new BreakerRules(1, 1, 1_000_000_000, 0, 1, 1, 1),
                learned::changed);
    }

    private LearnedModels.Together asked() {
        boolean sglang = false;
        boolean vllm = false;
        boolean unknown = false;
        int most = UsageReader.UNKNOWN;
        for (Upstream upstream : all) {
            sglang |= upstream.promptRules() == PromptRules.SGLANG;
            vllm |= upstream.promptRules() == PromptRules.VLLM;
            if (upstream.pool() == WorkerPool.MAIN) {
                unknown |= upstream.maxModelLength() == UsageReader.UNKNOWN;
                most = Math.max(most, upstream.maxModelLength());
            }
        }
        return new LearnedModels.Together(
                sglang && !vllm ? PromptRules.SGLANG : PromptRules.VLLM,
                unknown ? UsageReader.UNKNOWN : most);
    }

    @Test
    void whatIsCountedIsWhatIsSaid() {
        final long seed = Seeds.next("LearnedModelsModelTest");
        final SplittableRandom random = new SplittableRandom(seed);
        final List<String> roles = List.of("both", "decode", "prefill");
        for (int step = 0; step < Trials.of(5_000, 100_000); step++) {
            final int what = random.nextInt(12);
            final Upstream upstream =
                    what < 2 || all.isEmpty()
                            ? server(roles.get(random.nextInt(roles.size())))
                            : all.get(random.nextInt(all.size()));
            if (!all.contains(upstream)) {
                say(upstream, random); // it is taken over from a former one, or said early
                learned.added(upstream);
                all.add(upstream);
            } else if (what < 4 || all.size() > 8) {
                all.remove(upstream);
                learned.removed(upstream);
                say(upstream, random); // late: it counts no more
                learned.removed(upstream);
            } else {
                say(upstream, random);
            }
            assertEquals(asked(), learned.together(), "seed " + seed + ", step " + step);
        }
    }

    private static void say(Upstream upstream, SplittableRandom random) {
        if (random.nextBoolean()) {
            upstream.promptRules(RULES[random.nextInt(RULES.length)]);
        }
        if (random.nextBoolean()) {
            upstream.maxModelLength(random.nextInt(-2, 3));
        }
    }

    @Test
    void whatOneOfTenThousandSaysCostsAsMuchAsOne() {
        for (int i = 0; i < 10_000; i++) {
            final Upstream upstream = server("both");
            upstream.maxModelLength(i);
            learned.added(upstream);
        }
        final Upstream last = server("both");
        learned.added(last);
        final long bytes =
                Allocations.bytesOf(
                        () -> {
                            last.promptRules(PromptRules.SGLANG);
                            last.maxModelLength(20_000);
                        });
        assertTrue(bytes < 10_000, "bytes=" + bytes);
        assertEquals(new LearnedModels.Together(PromptRules.SGLANG, 20_000), learned.together());
    }
}
