package io.kvasir.pipeline.source;

import static io.kvasir.pipeline.source.Messages.batch;
import static io.kvasir.pipeline.source.Messages.cleared;
import static io.kvasir.pipeline.source.Messages.pack;
import static io.kvasir.pipeline.source.Messages.range;
import static io.kvasir.pipeline.source.Messages.stored;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.log.LogLimit;

import org.junit.jupiter.api.Test;
import org.slf4j.event.EventRecordingLogger;
import org.slf4j.event.SubstituteLoggingEvent;
import org.slf4j.helpers.MessageFormatter;
import org.slf4j.helpers.SubstituteLogger;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;

/** What streams write into the log does not grow with the number of their messages. */
class StreamLogTest {
    private static final int BLOCK = 4;
    private static final int MESSAGES = 10_000;

    private final Queue<SubstituteLoggingEvent> events = new ArrayDeque<>();
    private final StreamLog log =
            new StreamLog(
                    new EventRecordingLogger(new SubstituteLogger("test", events, false), events));
    private boolean full;
    private long nowNs;

    private EngineStream stream(int slot) {
        return new EngineStream(
                SourceConfig.of("w" + slot, slot, BLOCK, ""), message -> !full, () -> nowNs, log);
    }

    /** The lines since the last call. */
    private List<String> lines() {
        final List<String> lines = new ArrayList<>();
        for (SubstituteLoggingEvent event : events) {
            lines.add(
                    MessageFormatter.basicArrayFormat(
                            event.getMessage(), event.getArgumentArray()));
        }
        events.clear();
        return lines;
    }

    private static byte[] store(int blockSize) {
        return batch(stored(List.of(1), null, range(1, blockSize), blockSize));
    }

    private static byte[] ofRank(int rank) {
        return pack(List.of(1.5, List.of(cleared()), rank));
    }

    private static void assertFew(List<String> lines) {
        assertTrue(
                !lines.isEmpty() && lines.size() <= LogLimit.LINES,
                () -> lines.size() + " lines, the last one " + lines.getLast());
    }

    @Test
    void messagesThatFindNoRoomAreAFewLines() {
        final EngineStream stream = stream(1);
        stream.onMessage(0, store(BLOCK));
        full = true;
        for (int i = 1; i < MESSAGES; i++) {
            stream.onMessage(i, store(BLOCK));
        }
        final List<String> lines = lines();
        assertFew(lines);
        assertTrue(lines.getFirst().contains("the event ring is full"), lines::getFirst);
        assertTrue(
                lines.getLast().endsWith("(of further ones nothing is said for 10 s)"),
                lines::getLast);

        nowNs += LogLimit.PERIOD_NS;
        stream.onMessage(MESSAGES, store(BLOCK));
        final long lost = stream.status().lostMessages();
        final List<String> later = lines();
        assertEquals(1, later.size());
        assertTrue(
                later.getFirst()
                        .endsWith(
                                "("
                                        + (lost - 1 - LogLimit.LINES)
                                        + " lines like this were left out before it)"),
                later::getFirst);
    }

    @Test
    void eachSecondMessageMissingIsAFewLinesAlsoOfManyStreams() {
        for (int slot = 0; slot < 10; slot++) {
            final EngineStream stream = stream(slot);
            for (int i = 0; i < MESSAGES / 5; i += 2) {
                stream.onMessage(i, store(BLOCK));
            }
            assertTrue(stream.status().lostMessages() > MESSAGES / 20);
        }
        assertFew(lines());
    }

    @Test
    void eachForeignRankIsOneLine() {
        final EngineStream stream = stream(1);
        for (int i = 0; i < MESSAGES; i++) {
            stream.onMessage(i, ofRank(1 + i % 2));
        }
        final List<String> lines = lines();
        assertEquals(2, lines.size(), () -> lines.size() + " lines");
        assertTrue(lines.getFirst().contains("the engine's events are of rank 1"), lines::getFirst);
        assertTrue(lines.getLast().contains("the engine's events are of rank 2"), lines::getLast);
    }

    @Test
    void manyForeignRanksAreAFewLines() {
        final EngineStream stream = stream(1);
        for (int i = 0; i < MESSAGES; i++) {
            stream.onMessage(i, ofRank(1 + i));
            nowNs += LogLimit.PERIOD_NS / LogLimit.LINES;
        }
        final List<String> lines = lines();
        assertEquals(RankFilter.MOST_SAID, lines.size(), () -> lines.size() + " lines");
    }

    @Test
    void aRankThatIsRightInTurnWithAForeignOneIsOneLine() {
        final EngineStream stream = stream(1);
        for (int i = 0; i < MESSAGES; i++) {
            stream.onMessage(i, ofRank(i % 2));
        }
        assertEquals(1, lines().stream().filter(line -> line.contains("are of rank 1")).count());
    }

    @Test
    void blockSizesInTurnAreAFewLines() {
        final EngineStream stream = stream(1);
        for (int i = 0; i < MESSAGES; i++) {
            stream.onMessage(i, store((2 * BLOCK) << (i % 2)));
        }
        assertFew(lines());
    }

    @Test
    void anEngineThatBeginsAnewWithEachMessageIsAFewLines() {
        final EngineStream stream = stream(1);
        for (int i = 0; i < MESSAGES; i++) {
            stream.onMessage(0, batch(stored(List.of(i), null, range(i, i + BLOCK - 1), BLOCK)));
        }
        assertTrue(stream.status().restarts() > MESSAGES / 2);
        assertFew(lines());
    }
}
