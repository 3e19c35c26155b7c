package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.removed;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CapacityRule;
import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.DecoderMemory;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/**
 * One engine, the stream of its events, and what is between them: lost, repeated and swapped
 * messages, connections that break, replays that break off, restarts. A view that is called exact
 * is, and in the end it is called so; the latter also where another engine has answered replays,
 * and messages with any number have come in the engine's name.
 */
class EngineStreamModelTest {
    private static final int TRIALS = Trials.of(150, 3_000);
    private static final int MOST_STEPS = 100;
    private static final int SLOT = 1;
    private static final int OTHER = 2;
    private static final int BLOCK = 2;
    private static final int NAMES = 30;

    @Tag("trials")
    @Test
    void whatIsCalledExactIsAndInTheEndAllIs() {
        final long seed = Seeds.next("EngineStreamModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            final Model model = new Model(new Random(seed + trial));
            try {
                model.run(5 + trial % MOST_STEPS);
            } catch (RuntimeException | AssertionError e) {
                final String story = String.join("\n", model.trace);
                throw new AssertionError("trial " + trial + " of " + seed + ":\n" + story, e);
            } finally {
                model.index.close();
            }
        }
    }

    /** What an engine sends; a negative number is the end of an answer. */
    @SuppressWarnings("ArrayRecordComponent") // never compared
    private record Message(long number, byte[] bytes) {}

    /** One run. */
    private static final class Model {
        private final Random random;
        private final List<String> trace = new ArrayList<>();
        private final PrefixIndex index;
        private final IndexApplier applier;
        private final boolean replayable;
        private final boolean asSource;
        private final boolean small;
        private final boolean sameNames;
        private final int keeps;
        private final boolean strange; // at times others answer, or send what the engine did not
        private EngineStream stream;
        private long nowNs = 1;
        private boolean good; // the network loses nothing
        private int life; // of the engine
        private long next;
        private double timestamp = 1;
        private final Map<Integer, Integer> blocks = new TreeMap<>();
        private final Deque<Message> buffer = new ArrayDeque<>();
        private final List<Map<Long, Map<Long, Integer>>> history = new ArrayList<>();
        private final List<Message> all = new ArrayList<>(); // of this life
        private boolean connected;
        private boolean broken; // the connection, and the stream does not know it
        private int connectedLife;
        private final Deque<Message> inFlight = new ArrayDeque<>();
        private final Deque<Message> waiting = new ArrayDeque<>(); // as in a ZmqSource
        private boolean wants; // a replay, which is not under way
        private boolean droppedSome;
        private boolean session; // a replay is under way, in one attempt or more
        private boolean asked;
        private boolean sessionBroken;
        private int failedAttempts;
        private Deque<Message> answer; // null: no attempt is connected
        private boolean tailDue;
        private final Deque<KvBatch> ring = new ArrayDeque<>();
        private final boolean slow;
        private int otherNames;
        private final Map<Integer, Long> emptiedBefore = new HashMap<>(); // message, by life

        Model(Random random) {
            this.random = random;
            replayable = random.nextInt(4) > 0;
            asSource = random.nextBoolean();
            small = random.nextInt(3) == 0;
            sameNames = random.nextBoolean();
            keeps = random.nextBoolean() ? 1_000 : 1 + random.nextInt(30);
            slow = random.nextInt(3) == 0;
            strange = random.nextInt(4) == 0;
            final List<CapacityRule> rules = List.of(CapacityRule.values());
            final PrefixIndexConfig config =
                    small
                            ? new PrefixIndexConfig(4, 24, 24)
                                    .with(rules.get(random.nextInt(rules.size())))
                            : new PrefixIndexConfig(4, 1_024, 1_024);
            index = new PrefixIndex(config);
            applier = new IndexApplier(index);
            history.add(new HashMap<>());
            history.get(0).put(-1L, Map.of());
            trace.add(
                    "replayable "
                            + replayable
                            + ", source "
                            + asSource
                            + ", small "
                            + small
                            + ", keeps "
                            + keeps
                            + ", slow "
                            + slow
                            + ", strange "
                            + strange
                            + " "
                            + config.capacityRule());
        }

        private void say(String what) {
            trace.add(
                    what
                            + "   | "
                            + stream.state()
                            + " "
                            + stream.status().cause()
                            + " last "
                            + stream.lastNumber()
                            + " engine "
                            + life
                            + "/"
                            + (next - 1));
        }

        private int hash(int name) {
            return (sameNames ? 0 : life * 1_000) + name;
        }

        private void publish() {
            final List<Object> events = new ArrayList<>();
            final int count = random.nextInt(10) == 0 ? 0 : 1 + random.nextInt(3);
            for (int i = 0; i < count; i++) {
                final int what = random.nextInt(60);
                if (what == 0) {
                    events.add(cleared());
                    blocks.clear();
                } else if (what < 25 && !blocks.isEmpty()) {
                    final List<Integer> held = new ArrayList<>(blocks.keySet());
                    final int name = held.get(random.nextInt(held.size()));
                    events.add(removed(List.of(name)));
                    blocks.merge(name, -1, Integer::sum);
                    blocks.values().removeIf(n -> n == 0);
                } else {
                    final int base = 1 + random.nextInt(NAMES);
                    final int parent = base / 3;
                    if (parent == 0 || blocks.containsKey(hash(parent))) {
                        final List<Integer> names = new ArrayList<>(List.of(hash(base)));
                        if (random.nextBoolean() && 3 * base <= NAMES) {
                            names.add(hash(3 * base));
                        }
                        final List<Integer> tokens = new ArrayList<>();
                        names.forEach(n -> tokens.addAll(range(10 * n, 10 * n + BLOCK - 1)));
                        names.forEach(n -> blocks.merge(n, 1, Integer::sum));
                        events.add(stored(names, parent == 0 ? null : hash(parent), tokens, BLOCK));
                    }
                }
            }
            send(events);
        }

        private void send(List<Object> events) {
            final Message message =
                    new Message(next++, pack(Arrays.asList(timestamp++, events, 0)));
            history.get(life).put(message.number, truth());
            buffer.addLast(message);
            all.add(message);
            if (buffer.size() > keeps) {
                buffer.removeFirst();
            }
            if (connected && !broken) {
                if (good || random.nextInt(12) > 0) {
                    inFlight.add(message);
                }
            }
            if (stream != null) {
                say("engine publishes " + message.number + " " + events);
            }
        }

        /** The caller has made the engine drop its cache; the engine says it with what is next. */
        private void dropCache() {
            stream.clear();
            say("emptied");
            for (int former = 0; former < life; former++) {
                emptiedBefore.put(former, Long.MAX_VALUE); // which the stream may be at still
            }
            emptiedBefore.put(life, next);
            blocks.clear();
            send(List.of(cleared()));
        }

        private void restart() {
            life++;
            next = 0;
            blocks.clear();
            buffer.clear();
            all.clear();
            history.add(new HashMap<>());
            history.get(life).put(-1L, Map.of());
            broken = true;
            sessionBroken = true;
            if (stream != null) {
                say("engine restarts");
            }
        }

        private boolean offer(KvBatch batch) {
            if (!slow) {
                return applier.offer(batch);
            }
            if (ring.size() >= 4 || (!good && random.nextInt(20) == 0)) {
                return false;
            }
            final KvBatch copy = new KvBatch();
            copy.copyFrom(batch);
            return ring.add(copy);
        }

        private void applySome(int most) {
            for (int i = 0; i < most && !ring.isEmpty(); i++) {
                applier.offer(ring.poll());
            }
        }

        private void start() {
            final int before = random.nextInt(20);
            final int at = random.nextInt(3) == 0 && before > 0 ? random.nextInt(before) : -1;
            Map<Integer, Integer> restored = new TreeMap<>();
            for (int i = 0; i < before; i++) {
                publish();
                if (i == at) {
                    restored = new TreeMap<>(blocks);
                }
            }
            SourceConfig config =
                    SourceConfig.of("w", SLOT, BLOCK, random.nextBoolean() ? "" : "tcp://h:1");
            config = replayable ? config.withReplayEndpoint("direct") : config;
            stream = new EngineStream(config, this::offer, () -> nowNs);
            if (at >= 0) {
                restore(restored, at);
            }
            say("begins");
            if (random.nextInt(3) == 0) {
                restart();
            }
        }

        private void restore(Map<Integer, Integer> restored, int at) {
            if (small) {
                return;
            }
            final KvBatch batch = new KvBatch();
            batch.reset(SLOT, at, CopyRule.PHYSICAL, false, ApplyListener.NONE);
            for (Map.Entry<Integer, Integer> block : restored.entrySet()) {
                final int parent = block.getKey() / 3;
                if (parent > 0 && !restored.containsKey(parent)) {
                    return; // a block behind a hole
                }
                for (int i = 0; i < block.getValue(); i++) {
                    final List<Integer> tokens =
                            range(10 * block.getKey(), 10 * block.getKey() + BLOCK - 1);
                    final long[] local = new long[1];
                    BlockHasher.localHashes(
                            tokens.stream().mapToInt(x -> x).toArray(),
                            0,
                            BLOCK,
                            BLOCK,
                            BlockHasher.BASE_SEED,
                            local);
                    batch.addStored(parent == 0, parent, new long[] {block.getKey()}, local, 1);
                }
            }
            applier.offer(batch);
            final byte[] bytes = all.get(at).bytes;
            stream.startAfter(
                    new StreamStart(
                            at,
                            new SequenceTracker(0).contentOf(bytes, 0, bytes.length),
                            true,
                            0,
                            new StreamMemory(RemovalRule.PHYSICAL, DecoderMemory.NONE)));
            say("restored at " + at);
        }

        private void onMessage(Message message) {
            if (asSource) {
                if (liveWaits() || !waiting.isEmpty()) {
                    if (waiting.size() >= 6) {
                        droppedSome = true;
                        say("live " + message.number + " dropped");
                        return;
                    }
                    waiting.add(message);
                    stream.waitsBefore(waiting.size());
                    say("live " + message.number + " waits");
                    return;
                }
                stream.onMessage(message.number, message.bytes);
                say("live " + message.number);
                replayNeeded();
            } else {
                stream.onMessage(message.number, message.bytes);
                say("live " + message.number);
            }
        }

        private boolean liveWaits() {
            return replayNeeded() && stream.holdsLive();
        }

        private boolean replayNeeded() {
            if (session || wants) {
                return true;
            }
            if (stream.replayFrom() < 0) {
                return false;
            }
            wants = true;
            return true;
        }

        private void drain() {
            while (!waiting.isEmpty()) {
                if (liveWaits()) {
                    return;
                }
                final Message message = waiting.poll();
                stream.waitStill(waiting.size());
                stream.onMessage(message.number, message.bytes);
                say("drained " + message.number);
            }
            if (droppedSome) {
                droppedSome = false;
                stream.checkTail();
            }
            replayNeeded();
        }

        private void replayStep() {
            if (!session) {
                if (asSource ? !wants : !stream.wantsReplay()) {
                    return;
                }
                wants = false;
                session = true;
                failedAttempts = 0;
                asked = false;
                answer = null;
                sessionBroken = false;
                return;
            }
            if (answer == null) {
                if (connected && broken && (good || random.nextInt(3) > 0)) {
                    connection(); // mostly it is known before the next life answers
                }
                sessionBroken = false;
                if (!good && random.nextInt(4) == 0) {
                    attemptFailed();
                    return;
                }
                final long from = stream.replayFrom();
                if (from < 0) {
                    endSession();
                    return;
                }
                asked = true;
                answer = new ArrayDeque<>();
                if (strange && !good && random.nextInt(3) == 0) {
                    final long first = Math.max(0, from - random.nextInt(2));
                    final long until = Math.min(first + 40, next + random.nextInt(4));
                    for (long number = first; number < until; number++) {
                        answer.add(ofAnother(number));
                    }
                    answer.add(new Message(-1, new byte[0]));
                    say("another engine is asked from " + from);
                    return;
                }
                for (Message message : buffer) {
                    if (message.number >= from
                            && (good || answer.isEmpty() || random.nextInt(15) > 0)) {
                        answer.add(message);
                    }
                }
                if (from == 0 && !answer.isEmpty() && answer.peek().number == 1) {
                    answer.poll(); // would be taken for a publisher that counts from 1
                }
                if (good || random.nextInt(8) > 0) {
                    answer.add(new Message(-1, new byte[0]));
                }
                say("asks from " + from);
                return;
            }
            if (answer.isEmpty() || (sessionBroken && random.nextBoolean())) {
                attemptFailed();
                return;
            }
            if (!good && random.nextInt(15) == 0) {
                attemptFailed();
                return;
            }
            final Message message = answer.peek();
            if (message.number < 0) {
                stream.replayEnded();
                endSession();
                say("replay ended");
                return;
            }
            final EngineStream.ReplayStep step = stream.onReplayed(message.number, message.bytes);
            say("replayed " + message.number + " " + step);
            switch (step) {
                case CONTINUE -> answer.poll();
                case STOP -> endSession();
                case RETRY -> {}
            }
        }

        /** What another engine has sent under a number. */
        private Message ofAnother(long number) {
            final int name = 900_000 + random.nextInt(1_000);
            return new Message(
                    number,
                    pack(
                            Arrays.asList(
                                    timestamp,
                                    List.of(stored(List.of(name), null, range(1, BLOCK), BLOCK)),
                                    0)));
        }

        private void stranger() {
            if (strange && connected && !broken) {
                final long number =
                        switch (random.nextInt(6)) {
                            case 0 -> Long.MAX_VALUE - random.nextInt(3);
                            case 1 -> random.nextLong();
                            case 2 -> next + random.nextInt(300);
                            case 3 -> random.nextInt(3);
                            case 4 -> next + Integer.MAX_VALUE;
                            default -> Math.max(0, next - random.nextInt(4));
                        };
                onMessage(ofAnother(number));
            }
        }

        private void attemptFailed() {
            failedAttempts = asked && stream.hasReplayed() ? 0 : failedAttempts + 1;
            asked = false;
            answer = null;
            say("attempt failed");
            if (failedAttempts == 2) {
                stream.replayFailed("mute");
                say("replay failed");
                endSession();
            }
        }

        private void endSession() {
            session = false;
            answer = null;
            if (asSource) {
                drain();
            }
        }

        private void deliver() {
            if (inFlight.isEmpty()) {
                return;
            }
            final Message message = inFlight.poll();
            if (!good && !inFlight.isEmpty() && random.nextInt(12) == 0) {
                onMessage(inFlight.poll());
            }
            onMessage(message);
        }

        private void connection() {
            if (connected && broken) {
                while (!inFlight.isEmpty() && random.nextBoolean()) {
                    deliver();
                }
                stream.onDisconnected("reset");
                say("disconnected");
                while (!inFlight.isEmpty() && random.nextBoolean()) {
                    deliver();
                }
                inFlight.clear();
                connected = false;
            } else if (!connected) {
                connected = true;
                broken = false;
                connectedLife = life;
                waiting.clear();
                stream.waitStill(0);
                stream.onConnected();
                say("connected");
                tailDue = true;
                if (asSource) {
                    replayNeeded();
                }
            } else if (!good && random.nextInt(4) == 0) {
                broken = true;
            }
        }

        private void pass(long ms) {
            nowNs += TimeUnit.MILLISECONDS.toNanos(ms);
            stream.tick();
            if (asSource) {
                replayNeeded();
            }
            say("tick " + ms);
        }

        private void tail() {
            if (tailDue) {
                tailDue = false;
                stream.checkTail();
                say("tail");
                if (asSource) {
                    replayNeeded();
                }
            }
        }

        private void other() {
            if (!small) {
                return;
            }
            final KvBatch batch = new KvBatch();
            batch.reset(OTHER, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
            if (random.nextInt(3) == 0) {
                batch.addCleared();
            } else {
                for (int i = 0; i < 4; i++) {
                    final long name = 100_000L + otherNames++;
                    batch.addStored(true, 0, new long[] {name}, new long[] {name}, 1);
                }
            }
            applier.offer(batch);
            say("other");
        }

        private void run(int steps) {
            start();
            for (int step = 0; step < steps; step++) {
                switch (random.nextInt(26)) {
                    case 0, 1, 2, 3 -> publish();
                    case 4, 5, 6, 7, 8 -> deliver();
                    case 9, 10, 11, 12, 13, 14 -> replayStep();
                    case 15, 16 -> connection();
                    case 17 -> pass(random.nextInt(5) == 0 ? 20_000 : 60);
                    case 18 -> {
                        if (random.nextInt(4) == 0) {
                            restart();
                        }
                    }
                    case 19 -> {
                        if (!all.isEmpty() && connected && !broken) {
                            onMessage(all.get(Math.max(0, all.size() - 1 - random.nextInt(5))));
                        }
                    }
                    case 20 -> applySome(1 + random.nextInt(4));
                    case 21 -> tail();
                    case 22 -> other();
                    case 24 -> stranger();
                    case 23 -> {
                        if (random.nextInt(8) == 0) {
                            dropCache();
                        }
                    }
                    default -> applySome(4);
                }
                check();
            }
            settle();
        }

        private Map<Long, Integer> held() {
            final Map<Long, Integer> held = new TreeMap<>();
            index.forEach(
                    (slot, name, sequence, copies) -> {
                        if (slot == SLOT && copies > 0) {
                            held.put(name, copies);
                        }
                    });
            return held;
        }

        private void check() {
            final IndexState state = stream.state();
            final SourceStatus status = stream.status();
            assertTrue(stream.behind() >= 0 && status.waiting() >= 0);
            if (strange) {
                return; // what is sent in the engine's name is believed, until it shows
            }
            if (state == IndexState.EXACT) {
                assertTrue(
                        (connected && !broken)
                                ? isTrueOf(connectedLife, status.lastSequence())
                                : isTrueOfAny(status.lastSequence()),
                        "exact");
            }
            if (state == IndexState.RESYNC && ring.isEmpty() && life == 0) {
                assertTrue(isTrueOfAny(status.lastSequence()), "resync");
            }
        }

        private boolean isTrueOfAny(long number) {
            boolean of = false;
            for (int i = 0; i < history.size(); i++) {
                of |= isTrueOf(i, number);
            }
            return of;
        }

        /** Less is there of an engine that has dropped its cache, until it has said so. */
        private boolean isTrueOf(int which, long number) {
            final Map<Long, Integer> held = held();
            final Map<Long, Integer> had = history.get(which).get(number);
            return had != null
                    && (held.equals(had)
                            || (number < emptiedBefore.getOrDefault(which, 0L)
                                    && held.entrySet().stream()
                                            .allMatch(
                                                    block ->
                                                            block.getValue()
                                                                    <= had.getOrDefault(
                                                                            block.getKey(), 0))));
        }

        private Map<Long, Integer> truth() {
            final Map<Long, Integer> truth = new TreeMap<>();
            blocks.forEach((name, copies) -> truth.put((long) name, copies));
            return truth;
        }

        private boolean isRight() {
            return stream.state() == IndexState.EXACT && truth().equals(held());
        }

        private void settle() {
            good = true;
            say("good from now on");
            if (strange) {
                restart(); // ends what was believed of others, if anything
            }
            if (small) {
                final KvBatch batch = new KvBatch();
                batch.reset(OTHER, 0, CopyRule.PHYSICAL, false, ApplyListener.NONE);
                batch.addCleared();
                applier.offer(batch);
            }
            while (!connected || broken) {
                connection();
            }
            send(List.of());
            final boolean whole = replayable && next <= keeps;
            settle(whole ? 4_000 : 100);
            if (!whole && !isRight()) {
                blocks.clear();
                send(List.of(cleared()));
                settle(2_000);
            }
            assertTrue(
                    isRight(), () -> "has " + held() + ", true " + blocks + " " + stream.status());
            assertEquals(0, stream.status().waiting());
        }

        private void settle(int seconds) {
            for (int i = 0; i < seconds && !isRight(); i++) {
                while (!inFlight.isEmpty()) {
                    deliver();
                    check();
                }
                final int had = trace.size();
                for (int j = 0; j < 40; j++) {
                    replayStep();
                    applySome(4);
                    check();
                }
                final boolean idle = trace.size() == had;
                pass(1_000);
                if (idle) {
                    trace.removeLast();
                }
                tail();
            }
        }
    }
}
