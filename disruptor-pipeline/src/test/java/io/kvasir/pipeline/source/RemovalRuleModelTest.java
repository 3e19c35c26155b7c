package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream.ReplayStep;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.IntPredicate;

/**
 * Engines of both kinds announce random blocks to a stream with {@code removals=auto}, and state
 * hits that are too low for other reasons, too: once stores and hits have shown what removals mean,
 * the index holds what the engine does.
 */
class RemovalRuleModelTest {
    private static final int SLOT = 1;
    private static final int BLOCK = 4;
    private static final int NAMES = 12;
    private static final int TRIALS = Trials.of(15, 300);

    @Tag("trials")
    @Test
    void theIndexHoldsWhatTheEngineDoesHoweverTheRuleWasFound() {
        for (int seed = 0; seed < TRIALS; seed++) {
            try (Model model = new Model(new Random(seed), seed % 2 == 0)) {
                model.run();
            } catch (AssertionError | RuntimeException e) {
                throw new AssertionError("seed " + seed, e);
            }
        }
    }

    /** One run. */
    private static final class Model implements AutoCloseable {
        private final Random random;
        private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 512, 512));
        private final EngineStream stream;
        private final boolean lastCopy;
        private final Map<Integer, Integer> copies = new TreeMap<>();
        private final List<byte[]> sent = new ArrayList<>();
        private int next; // message to be received
        private long nowNs = 1;

        Model(Random random, boolean lastCopy) {
            this.random = random;
            this.lastCopy = lastCopy;
            stream =
                    new EngineStream(
                            SourceConfig.of("w", SLOT, BLOCK, "").withReplayEndpoint("direct"),
                            new IndexApplier(index),
                            () -> nowNs);
        }

        @Override
        public void close() {
            index.close();
        }

        private void run() {
            final int steps = 20 + random.nextInt(150);
            for (int i = 0; i < steps; i++) {
                switch (random.nextInt(20)) {
                    case 0 -> hitsThatAreTooLow();
                    case 1, 2, 3 -> hits(name -> true);
                    case 4, 5 -> answer();
                    case 6 -> pass();
                    case 7, 8, 9, 10, 11, 12 -> remove();
                    default -> store(1 + random.nextInt(NAMES));
                }
                check();
            }
            settle();
        }

        /** Whatever has not come, comes; and each block is used, or its lack stated. */
        private void settle() {
            store(1); // an engine that has said nothing is not known
            for (int round = 0; round < 4; round++) {
                answer();
                for (int name : new TreeSet<>(copies.keySet())) {
                    final int child = NAMES + 1 + name; // of none but this block
                    send(storing(child, name), child, true);
                }
                for (int i = 0; i < RemovalRuleDetector.OVER_PREDICTIONS; i++) {
                    answer();
                    hits(name -> !copies.containsKey(name));
                }
                for (int name : new TreeSet<>(copies.keySet())) {
                    if (name > NAMES) {
                        while (copies.containsKey(name)) {
                            removeOne(name);
                        }
                    }
                }
                answer();
            }
            for (int i = 0; i < ForecastWatch.WINDOW; i++) {
                stream.reportEngineHit(BLOCK, BLOCK, true); // what was stated wrongly is over
            }
            assertEquals(
                    copies.keySet(),
                    held(),
                    () -> "held; last copy: " + lastCopy + stream.status());
            assertEquals(
                    IndexState.EXACT,
                    stream.state(),
                    () -> stream.status() + " last copy: " + lastCopy);
            assertTrue(stream.status().ruleSwitches() <= 2, "it goes from one to the other");
        }

        private void check() {
            if (stream.status().removals() == RemovalRule.PHYSICAL && !lastCopy && isWhole()) {
                assertEquals(copies.keySet(), held());
            }
            if (stream.status().removals() == RemovalRule.LAST_COPY && isWhole()) {
                assertTrue(copies.keySet().containsAll(held()), "no block that it has not");
            }
        }

        private boolean isWhole() {
            return stream.state() == IndexState.EXACT && next == sent.size();
        }

        private Set<Integer> held() {
            final Set<Integer> held = new TreeSet<>();
            index.forEach((slot, engine, sequence, count) -> held.add((int) engine));
            return held;
        }

        private static Object storing(int name, int parent) {
            return stored(
                    List.of(name),
                    parent == 0 ? null : parent,
                    range(10 * name, 10 * name + BLOCK - 1),
                    BLOCK);
        }

        private void store(int name) {
            final int parent = name / 3;
            if (parent == 0 || copies.containsKey(parent)) {
                send(storing(name, parent), name, true);
            }
        }

        private void remove() {
            final List<Integer> names = new ArrayList<>(copies.keySet());
            if (!names.isEmpty()) {
                removeOne(names.get(random.nextInt(names.size())));
            }
        }

        private void removeOne(int name) {
            if (lastCopy && copies.get(name) > 1) {
                copies.merge(name, -1, Integer::sum); // it is not said
            } else {
                send(removed(List.of(name)), name, false);
            }
        }

        private void send(Object event, int name, boolean stores) {
            copies.merge(name, stores ? 1 : -1, Integer::sum);
            copies.values().removeIf(count -> count == 0);
            sent.add(batch(event));
            while (next < sent.size() && random.nextInt(8) > 0) {
                receive();
            }
        }

        private void receive() {
            stream.onMessage(next, sent.get(next));
            next++;
        }

        /** All that is on its way comes, and all that is asked for. */
        private void answer() {
            for (int i = 0; i < 10; i++) {
                while (next < sent.size()) {
                    receive();
                }
                stream.tick();
                final long from = stream.replayFrom();
                if (from == EngineStream.NO_REPLAY) {
                    return;
                }
                for (int at = (int) from; at < sent.size(); at++) {
                    if (stream.onReplayed(at, sent.get(at)) != ReplayStep.CONTINUE) {
                        break;
                    }
                }
                stream.replayEnded();
            }
        }

        /** A request for each block that either has, or for some. */
        private void hits(IntPredicate asked) {
            if (!isWhole()) {
                return;
            }
            final Set<Integer> held = held();
            final Set<Integer> names = new TreeSet<>(copies.keySet());
            names.addAll(held);
            names.removeIf(name -> !asked.test(name));
            for (int name : names) {
                stream.reportEngineHit(
                        held.contains(name) ? BLOCK : 0,
                        copies.containsKey(name) ? BLOCK : 0,
                        true);
            }
        }

        /** As of requests that the engine computes anew, whatever it has. */
        private void hitsThatAreTooLow() {
            for (int i = 0; i < RemovalRuleDetector.OVER_PREDICTIONS; i++) {
                stream.reportEngineHit(BLOCK, 0, true);
            }
        }

        private void pass() {
            nowNs += random.nextLong(400_000_000_000L);
            stream.tick();
        }
    }
}
