package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;

/**
 * Two engines that publish as one worker, as where the former one of a deployment does not end:
 * each counts its messages by itself, and a stream gets them mixed. A view that is called exact has
 * no block that neither of them has.
 */
class TwoPublishersModelTest {
    private static final int TRIALS = Trials.of(12, 200);
    private static final int STEPS = 60;
    private static final int SLOT = 0;
    private static final int BLOCK = 2;

    @Tag("trials")
    @Test
    void noViewIsExactWithBlocksThatNeitherHas() {
        final long seed = Seeds.next("TwoPublishersModelTest");
        int exact = 0;
        for (int trial = 0; trial < TRIALS; trial++) {
            try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(1, 1_024, 1_024))) {
                final Model model = new Model(new Random(seed + trial), index);
                try {
                    model.run();
                    exact += model.exact;
                } catch (RuntimeException | AssertionError e) {
                    throw new AssertionError(
                            "trial " + trial + " of " + seed + ": " + model.trace, e);
                }
            }
        }
        assertTrue(exact > TRIALS, "hardly any view was exact: " + exact);
    }

    /** One engine. */
    private static final class Engine {
        private final int firstName;
        private final Set<Long> blocks = new TreeSet<>();
        private final List<byte[]> sent = new ArrayList<>(); // the number of each is its index
        private final List<Set<Long>> had = new ArrayList<>(); // before each message, and now
        private int delivered;

        Engine(int firstName) {
            this.firstName = firstName;
            had.add(Set.of());
        }

        String publish(Random random) {
            final List<Object> events = new ArrayList<>();
            final long name = (long) firstName + random.nextInt(6);
            if (random.nextInt(40) == 0) {
                events.add(cleared());
                blocks.clear();
            } else if (!blocks.add(name)) {
                blocks.remove(name);
                events.add(removed(List.of((int) name)));
            } else {
                final int first = (int) (10 * name);
                events.add(
                        stored(List.of((int) name), null, range(first, first + BLOCK - 1), BLOCK));
            }
            had.add(Set.copyOf(blocks));
            sent.add(pack(Arrays.asList(1.0, events, 0)));
            return sent.size() - 1 + " " + events;
        }
    }

    private static final class Model {
        private final List<String> trace = new ArrayList<>();
        private final Random random;
        private final PrefixIndex index;
        private final EngineStream stream;
        private final Engine[] engines;
        private final boolean replayable;
        private long nowNs = 1;
        private int exact; // views of blocks while both publish

        Model(Random random, PrefixIndex index) {
            this.random = random;
            this.index = index;
            final boolean sameNames = random.nextBoolean();
            engines = new Engine[] {new Engine(1), new Engine(sameNames ? 1 : 101)};
            replayable = random.nextInt(3) == 0;
            final IndexApplier applier = new IndexApplier(index);
            final SourceConfig config = SourceConfig.of("w", SLOT, BLOCK, "");
            stream =
                    new EngineStream(
                            replayable ? config.withReplayEndpoint("direct") : config,
                            applier,
                            () -> nowNs);
            final int before = random.nextInt(300); // one may be far before the other
            for (int i = 0; i < before; i++) {
                engines[0].publish(random);
            }
            say("0 has published " + before);
            engines[0].delivered = random.nextBoolean() ? before : 0;
        }

        private void say(String what) {
            trace.add(
                    "\n"
                            + what
                            + " | "
                            + stream.state()
                            + " last "
                            + stream.status().lastSequence()
                            + " holds "
                            + held());
        }

        private Set<Long> held() {
            final Set<Long> held = new TreeSet<>();
            index.forEach((slot, name, sequence, copies) -> held.add(name));
            return held;
        }

        void run() {
            stream.onConnected();
            for (int step = 0; step < STEPS; step++) {
                final int which = random.nextInt(2);
                final Engine engine = engines[which];
                switch (random.nextInt(8)) {
                    case 0, 1, 2, 3 -> say(which + " publishes " + engine.publish(random));
                    case 4, 5, 6 -> deliver(which, 1 + random.nextInt(4));
                    default -> {
                        nowNs += TimeUnit.MILLISECONDS.toNanos(200);
                        stream.tick();
                        say("tick");
                    }
                }
                if (replayable && random.nextInt(3) > 0 && stream.wantsReplay()) {
                    answer(random.nextInt(2));
                }
            }
            for (int i = 0; i < engines.length; i++) {
                deliver(i, Integer.MAX_VALUE);
            }
        }

        private void deliver(int which, int most) {
            final Engine engine = engines[which];
            for (int i = 0; i < most && engine.delivered < engine.sent.size(); i++) {
                stream.onMessage(engine.delivered, engine.sent.get(engine.delivered));
                say(which + " is received: " + engine.delivered++);
                check();
            }
        }

        private void answer(int which) {
            final List<byte[]> sent = engines[which].sent;
            final int from = (int) stream.replayFrom();
            say("asks " + which + " from " + from);
            for (int i = from; i < sent.size(); i++) {
                if (stream.onReplayed(i, sent.get(i)) == EngineStream.ReplayStep.STOP) {
                    say("stops at " + i);
                    return;
                }
            }
            stream.replayEnded();
            say("answered");
        }

        /** What replays have brought is newer than what was delivered. */
        private void check() {
            if (stream.state() != IndexState.EXACT) {
                return;
            }
            final Set<Long> wrong = held();
            exact += wrong.isEmpty() || engines[1].delivered == 0 ? 0 : 1;
            for (Engine engine : engines) {
                final int newest = replayable ? engine.sent.size() : engine.delivered;
                for (int i = engine.delivered; i <= newest; i++) {
                    wrong.removeAll(engine.had.get(i));
                }
            }
            assertTrue(wrong.isEmpty(), () -> "neither has " + wrong);
        }
    }
}
