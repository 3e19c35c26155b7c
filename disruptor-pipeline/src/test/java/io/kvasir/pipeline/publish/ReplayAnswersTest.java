package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.publish.ReplayAnswers.State;

import org.junit.jupiter.api.Test;

class ReplayAnswersTest {
    private static final byte[] TOPIC = {'t'};
    private static final int MESSAGES = 100;

    private final ReplayBuffer buffer = new ReplayBuffer(MESSAGES, 1_000);
    private final SlowPeer peer = new SlowPeer();
    private final ReplayAnswers answers = new ReplayAnswers(buffer, TOPIC, peer);

    ReplayAnswersTest() {
        publish();
    }

    private void publish() {
        for (int i = 0; i < MESSAGES; i++) {
            buffer.add(new byte[] {(byte) i});
        }
    }

    private void expect(long number) {
        assertArrayEquals(ZmqPublisher.number(number), peer.read()[2]);
    }

    @Test
    void noMoreIsSentAheadThanTheLimitAndTheAnswerIsUnderWayUntilItsEnd() {
        assertEquals(State.WAITING, answers.begin(0, 0));
        assertEquals(State.WAITING, answers.goOn(1));
        assertEquals(ReplayAnswers.AHEAD, peer.unsent());
        assertTrue(answers.isUnderWay());
        for (int i = 0; i < MESSAGES; i++) {
            expect(i);
            if (answers.isUnderWay()) {
                answers.goOn(2);
            }
        }
        expect(-1);
        assertFalse(answers.isUnderWay());
        assertEquals(ReplayAnswers.AHEAD, peer.most());
        assertEquals(State.ENDED, answers.begin(MESSAGES - 1, 3));
        expect(MESSAGES - 1);
        expect(-1);
    }

    @Test
    void whatIsEvictedMeanwhileIsLeftOutAndWhatIsNewNotSent() {
        answers.begin(0, 0);
        publish();
        for (int i = 0; i < ReplayAnswers.AHEAD; i++) {
            expect(i);
        }
        assertEquals(State.ENDED, answers.goOn(1));
        expect(-1);
        assertEquals(0, peer.unsent());
    }

    @Test
    void aPeerThatReadsNothingForTooLongIsKnown() {
        final long most = ReplayAnswers.MOST_STALL_NS;
        answers.begin(0, 0);
        assertEquals(State.WAITING, answers.goOn(most));
        expect(0);
        assertEquals(State.WAITING, answers.goOn(most + 1));
        assertEquals(State.WAITING, answers.goOn(2 * most + 1));
        assertEquals(State.STALLED, answers.goOn(2 * most + 2));
    }
}
