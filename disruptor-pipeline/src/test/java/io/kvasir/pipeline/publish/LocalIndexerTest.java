package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RecoveryAnswer;
import io.kvasir.pipeline.wire.RecoveryAnswer.Kind;
import io.kvasir.pipeline.wire.RecoveryQuery;
import io.kvasir.pipeline.wire.RouterEventDecoder;
import io.kvasir.pipeline.wire.RouterMessage;
import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.NaivePrefixIndex;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.LongStream;

class LocalIndexerTest {
    private static final long WORKER = -7; // as 64 unsigned bits
    private static final long PUBLISHER = 99;
    private static final int MOST_BYTES = 4_096;
    private static final int EVENTS = 8;

    private final LocalIndexer indexer = indexer(1_000);
    private final KvEventPublisher publisher = publisher(indexer);

    private static LocalIndexer indexer(int blocks) {
        return new LocalIndexer(WORKER, 2, PUBLISHER, EVENTS, 1 << 20, blocks);
    }

    private static KvEventPublisher publisher(LocalIndexer indexer) {
        return new KvEventPublisher(1, new RecordedTransport(), indexer);
    }

    private static List<RecoveryAnswer> ask(LocalIndexer indexer, long start, int mostBytes) {
        final byte[] query = new RecoveryQuery(WORKER, 2, start, RecoveryQuery.NO_END).toBytes();
        final List<RecoveryAnswer> answers = new ArrayList<>();
        for (byte[] message : indexer.answer(query, mostBytes)) {
            assertTrue(message.length <= mostBytes, message.length + " bytes");
            final RecoveryAnswer answer = RecoveryAnswer.read(message);
            assertEquals(WORKER, answer.workerId());
            assertEquals(2, answer.dpRank());
            assertEquals(PUBLISHER, answer.publisherId());
            assertEquals(answers.size(), answer.part());
            answers.add(answer);
        }
        assertEquals(answers.size(), answers.getLast().parts());
        return answers;
    }

    private List<RecoveryAnswer> ask(long start) {
        return ask(indexer, start, MOST_BYTES);
    }

    private static List<Long> ids(List<RecoveryAnswer> answers) {
        final List<Long> ids = new ArrayList<>();
        final RouterMessage events = new RouterMessage();
        for (RecoveryAnswer answer : answers) {
            assertTrue(events.wrapPayload(answer.payload(), 0, answer.payload().length));
            while (events.next()) {
                assertTrue(events.isAddressed());
                assertEquals(WORKER, events.workerId());
                ids.add(events.eventId());
            }
            assertFalse(events.isTruncated());
        }
        return ids;
    }

    private void store(long name, Long parent) throws IOException {
        publisher.publishStored(new int[] {(int) name}, new long[] {name}, parent);
    }

    @Test
    void theEventsFromOneOnAreAnsweredWhileAllOfThemAreRemembered() throws IOException {
        assertEquals(List.of(), ids(ask(0)), "nothing has happened yet");
        assertEquals(0, ask(0).getFirst().lastEventId());
        for (int name = 1; name <= EVENTS; name++) {
            store(name, null);
        }
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L), ids(ask(0)));
        assertEquals(List.of(7L, 8L), ids(ask(7)));
        assertEquals(List.of(), ids(ask(9)), "nothing is missing");
        assertEquals(Kind.EVENTS, ask(9).getFirst().kind());
        assertEquals(8, ask(9).getFirst().lastEventId());
        assertEquals(Kind.TOO_NEW, ask(10).getFirst().kind());
        store(9, null);
        assertEquals(Kind.DUMP, ask(1).getFirst().kind());
        assertEquals(9, ask(1).getFirst().lastEventId());
        assertEquals(Kind.EVENTS, ask(2).getFirst().kind());
        assertEquals(new LocalIndexer.Counts(8, 2, 1, 1), indexer.counts());
    }

    @Test
    void eventsAndDumpsSayThatBlocksAreHashedForEagle() throws IOException {
        final KvBatch message = new KvBatch();
        message.markEagle();
        message.addStored(true, 0, new long[] {1}, new long[] {1}, 1);
        final KvBatch batch = new KvBatch();
        new CopyCounts().follow(message, batch); // as a relay does
        publisher.publish(batch);
        assertEquals(Kind.EVENTS, ask(1).getFirst().kind());
        assertTrue(saysEagle(ask(1).getFirst()));
        for (int name = 2; name <= 1 + EVENTS; name++) {
            store(name, null);
        }
        assertEquals(Kind.DUMP, ask(1).getFirst().kind());
        assertTrue(saysEagle(ask(1).getFirst()));
    }

    private static boolean saysEagle(RecoveryAnswer answer) {
        return new String(answer.payload(), StandardCharsets.ISO_8859_1).contains("eagle");
    }

    @Test
    void aRangeWithAnEndStopsThere() throws IOException {
        for (int name = 1; name <= EVENTS; name++) {
            store(name, null);
        }
        final byte[] query = new RecoveryQuery(WORKER, 2, 3, 5).toBytes();
        final RecoveryAnswer answer =
                RecoveryAnswer.read(indexer.answer(query, MOST_BYTES).getFirst());
        assertEquals(List.of(3L, 4L, 5L), ids(List.of(answer)));
        final byte[] backwards = new RecoveryQuery(WORKER, 2, 5, 3).toBytes();
        final RecoveryAnswer refused =
                RecoveryAnswer.read(indexer.answer(backwards, MOST_BYTES).getFirst());
        assertEquals(Kind.ERROR, refused.kind());
        assertTrue(refused.error().contains("invalid range"), refused.error());
    }

    @Test
    void queriesOfOthersAndNoQueriesAreRefusedInWords() {
        final byte[] other = new RecoveryQuery(8, 2, 1, RecoveryQuery.NO_END).toBytes();
        final RecoveryAnswer answer =
                RecoveryAnswer.read(indexer.answer(other, MOST_BYTES).getFirst());
        assertEquals(Kind.ERROR, answer.kind());
        assertTrue(answer.error().contains("worker 8/2 was asked for"), answer.error());
        final RecoveryAnswer junk =
                RecoveryAnswer.read(indexer.answer(new byte[] {1, 2}, MOST_BYTES).getFirst());
        assertEquals(Kind.ERROR, junk.kind());
        assertEquals(2, indexer.counts().refusals());
    }

    @Test
    void aNumberWithoutAnEventIsNamed() throws IOException {
        store(1, null);
        publisher.skipEvent();
        store(3, null);
        assertEquals(List.of(1L, 3L), ids(ask(1)));
        assertEquals(2, ask(1).getFirst().lostEventId());
        assertEquals(0, ask(3).getFirst().lostEventId(), "not in this range");
        for (int name = 4; name <= 2 * EVENTS; name++) {
            store(name, null);
        }
        assertEquals(Kind.DUMP, ask(1).getFirst().kind());
        assertEquals(2, ask(1).getFirst().lostEventId());
        publisher.publishAllCleared();
        for (int name = 1; name <= EVENTS; name++) {
            store(name, null);
        }
        assertEquals(0, ask(1).getFirst().lostEventId(), "a clear ends it");
    }

    @Test
    void aWorkerThatHoldsTooMuchGivesNoDumpBeforeItsNextClear() throws IOException {
        final LocalIndexer small = indexer(2);
        final KvEventPublisher of = publisher(small);
        for (int name = 1; name <= EVENTS + 1; name++) {
            of.publishStored(new int[] {name}, new long[] {name}, null);
        }
        final RecoveryAnswer refused = ask(small, 1, MOST_BYTES).getFirst();
        assertEquals(Kind.ERROR, refused.kind());
        assertTrue(refused.error().contains("more than 2 blocks"), refused.error());
        assertEquals(Kind.EVENTS, ask(small, 5, MOST_BYTES).getFirst().kind());
        of.publishAllCleared();
        of.publishStored(new int[] {1}, new long[] {1}, null);
        assertEquals(Kind.DUMP, ask(small, 1, MOST_BYTES).getFirst().kind());
        assertEquals(1, small.blocks());
    }

    @Test
    void anEventTooLargeForAMessageIsAnsweredWithADump() throws IOException {
        final int[] tokens = new int[200];
        final long[] names = new long[200];
        for (int i = 0; i < names.length; i++) {
            tokens[i] = i;
            names[i] = 1L + i;
        }
        publisher.publishStored(tokens, names, null);
        final List<RecoveryAnswer> answers = ask(1);
        assertEquals(Kind.DUMP, answers.getFirst().kind());
        assertTrue(answers.size() > 1, "cut into " + answers.size());
        store(500, null);
        assertEquals(2, ask(1).getFirst().lastEventId(), "made anew: a range would not be sent");
    }

    @Test
    void anAnswerIsReadAgainAsItWasWritten() {
        final RecoveryAnswer answer =
                new RecoveryAnswer(Kind.ERROR, -1, -2, 3, 4, 5, 6, 7, "why", new byte[] {8});
        final RecoveryAnswer read = RecoveryAnswer.read(answer.toBytes());
        assertEquals(
                answer.toString().replaceAll("payload.*", ""),
                read.toString().replaceAll("payload.*", ""));
        final byte[] whole = answer.toBytes();
        for (int length = 0; length < whole.length; length++) {
            assertNull(RecoveryAnswer.read(Arrays.copyOf(whole, length)));
        }
        assertEquals(
                new RecoveryQuery(-1, 2, 3, 4),
                RecoveryQuery.read(new RecoveryQuery(-1, 2, 3, 4).toBytes()));
        assertThrows(IllegalArgumentException.class, () -> new RecoveryQuery(1, -1, 0, 0));
    }

    /** A dump that an index has followed holds what the worker holds, holes included. */
    @Test
    void aDumpIsWhatTheWorkerHolds() throws IOException {
        final Random random = new Random(Seeds.next("LocalIndexerTest"));
        for (int round = 0; round < 200; round++) {
            final LocalIndexer of = indexer(10_000);
            final KvEventPublisher from = publisher(of);
            final NaivePrefixIndex truth = new NaivePrefixIndex(100_000, 100_000);
            change(random, from, truth, random.nextInt(60));
            // the ring is to begin behind the first event
            for (int i = 0; i <= EVENTS; i++) {
                from.publishRemoved(-1);
            }
            final int mostBytes = 700 + random.nextInt(3_000);
            assertEquals(held(truth), held(ask(of, 1, mostBytes)), "round " + round);
        }
    }

    private static void change(
            Random random, KvEventPublisher from, NaivePrefixIndex truth, int changes)
            throws IOException {
        for (int i = 0; i < changes; i++) {
            final int what = random.nextInt(10);
            if (what == 0 && random.nextInt(10) == 0) {
                from.publishAllCleared();
                truth.clear(0);
            } else if (what < 4) {
                final long[] names =
                        random.longs(1 + random.nextInt(3), 1, 60).distinct().toArray();
                from.publishRemoved(names);
                truth.remove(0, names, true);
            } else {
                final boolean root = random.nextInt(3) == 0;
                final long parent = 1L + random.nextInt(60);
                final long[] names =
                        random.longs(1 + random.nextInt(6), 1, 60)
                                .filter(name -> root || name != parent)
                                .distinct()
                                .toArray();
                if (names.length > 0) {
                    store(from, truth, root, parent, names);
                }
            }
        }
    }

    private static void store(
            KvEventPublisher from, NaivePrefixIndex truth, boolean root, long parent, long[] names)
            throws IOException {
        final int[] tokens = new int[names.length];
        final long[] locals = new long[names.length];
        for (int i = 0; i < names.length; i++) {
            tokens[i] = (int) names[i] % 7;
        }
        BlockHasher.localHashes(tokens, 0, tokens.length, 1, BlockHasher.BASE_SEED, locals);
        from.publishStored(tokens, names, root ? null : parent);
        truth.store(0, root, parent, names, locals, true);
    }

    private static Set<String> held(NaivePrefixIndex truth) {
        final Set<String> all = new TreeSet<>();
        for (NaivePrefixIndex.Held held : truth.held()) {
            long hash = 0;
            boolean first = true;
            for (long local : held.path()) {
                hash = first ? local : BlockHasher.nextSequenceHash(hash, local);
                first = false;
            }
            all.add(held.engineHash() + " " + hash);
        }
        return all;
    }

    private static Set<String> held(List<RecoveryAnswer> dump) {
        final Set<String> all = new TreeSet<>();
        final RouterMessage events = new RouterMessage();
        final RouterEventDecoder decoder = new RouterEventDecoder();
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(2, 4_096, 4_096))) {
            final IndexApplier applier = new IndexApplier(index);
            for (RecoveryAnswer answer : dump) {
                assertEquals(Kind.DUMP, answer.kind());
                final byte[] payload = answer.payload();
                assertTrue(events.wrapPayload(payload, 0, payload.length));
                while (events.next()) {
                    final KvBatch batch = new KvBatch();
                    batch.reset(0, 1, CopyRule.LAST_COPY, false, ApplyListener.NONE);
                    decoder.decode(payload, events.eventOffset(), events.eventLength(), batch);
                    applier.offer(batch);
                }
            }
            index.forEach((slot, name, sequence, copies) -> all.add(name + " " + sequence));
            assertEquals(0, index.unknownParents());
        }
        return all;
    }

    @Test
    void aTransportThatNamesNoPublisherHasNoLocalIndexer() {
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> new LocalIndexer(WORKER, 2, 0));
        assertTrue(e.getMessage().contains("publisherId=0"), e.getMessage());
    }

    @Test
    void aDumpThatNoRememberedEventFollowsIsMadeAnew() throws IOException {
        for (int name = 1; name <= 2 * EVENTS; name++) {
            store(name, null);
        }
        assertEquals(2 * EVENTS, ask(1).getFirst().lastEventId());
        store(100, null);
        for (int i = 0; i <= EVENTS; i++) {
            publisher.skipEvent();
        }
        assertEquals(2 * EVENTS + 1, ask(1).getFirst().lastEventId());
        assertEquals(2, indexer.counts().dumpsMade());
    }

    @Test
    void anAnswerThatIsNotSentYetHasNoCopyOfItsEvents() throws IOException {
        final int blocks = 1_000; // of more than 50 bytes
        final int mostBytes = 1 << 20;
        final long[] names = LongStream.range(0, blocks).toArray();
        for (int event = 0; event < EVENTS; event++) {
            publisher.publishStored(new int[blocks], names, null);
        }
        final byte[] query = new RecoveryQuery(WORKER, 2, 1, RecoveryQuery.NO_END).toBytes();
        indexer.answer(query, mostBytes);
        assertTrue(Allocations.bytesOf(() -> indexer.answer(query, mostBytes)) < 50 * blocks);
        assertEquals(List.of(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L), ids(ask(indexer, 1, mostBytes)));
    }

    @Test
    void anAnswerIsWhatItWasHoweverLateItIsSent() throws IOException {
        for (int name = 1; name <= 2 * EVENTS; name++) {
            store(name, null);
        }
        final byte[] query = new RecoveryQuery(WORKER, 2, 0, RecoveryQuery.NO_END).toBytes();
        final List<byte[]> answer = indexer.answer(query, MOST_BYTES);
        final List<byte[]> atOnce = List.copyOf(answer);
        publisher.publishAllCleared();
        for (int name = 1; name <= 2 * EVENTS; name++) {
            store(name, null);
        }
        assertEquals(atOnce.size(), answer.size());
        for (int part = 0; part < atOnce.size(); part++) {
            assertArrayEquals(atOnce.get(part), answer.get(part));
        }
    }
}
