package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.pipeline.source.RecoverySession.Life;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a publisher that answers is to a stream. */
class PlaneFeedTest {
    private static final long FORMER = 7;
    private static final long NOW = 8;
    private static final long OTHER = 9;
    private static final long SUCCEEDED_NS = Long.MAX_VALUE - 5; // the clock may overflow

    private final EngineStream stream =
            new EngineStream(
                    SourceConfig.ofRouterEvents("w", 0, 1), batch -> true, () -> SUCCEEDED_NS);
    private final PlaneFeed feed = new PlaneFeed(1, 0, stream);

    private void succeed() {
        feed.answeredBy = NOW;
        feed.formerPublisher = FORMER;
        feed.succeededNs = SUCCEEDED_NS;
    }

    @ParameterizedTest
    @CsvSource({
        "-60000000000, FORMER", // asked before the succession, answered whenever
        "-1, FORMER",
        "0, FORMER",
        "29999999999, FORMER",
        "30000000000, NEW",
        "30000000001, NEW",
        "86400000000000, NEW"
    })
    void theOneBeforeIsRefusedWhereItMayHaveBeenEndingWhenItWasAsked(long askedAfterNs, Life life) {
        succeed();
        assertEquals(life, feed.lifeOf(FORMER, SUCCEEDED_NS + askedAfterNs));
        assertEquals(Life.SAME, feed.lifeOf(NOW, SUCCEEDED_NS + askedAfterNs));
        assertEquals(Life.NEW, feed.lifeOf(OTHER, SUCCEEDED_NS + askedAfterNs));
    }

    @Test
    void withoutAnEventOrAnAnswerAnyPublisherIsTheOneOfTheStream() {
        assertEquals(Life.SAME, feed.lifeOf(OTHER, 0));
    }

    @Test
    void whatWasRestoredMayBeOfAnyLife() {
        stream.startAfter(new StreamStart(5, 0, true, 0, stream.memory()));
        assertEquals(Life.NEW, feed.lifeOf(OTHER, 0));
    }
}
