package io.kvasir.pipeline.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.CopyRule;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.DecoderMemory;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.pipeline.wire.RouterEventWriter;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;

/** How far an event plane says that the index is, and from where a later process goes on. */
class PlanePositionTest {
    private static final long STORE = 99;
    private static final long KNOWN = 7;
    private static final long OTHER = 8;

    private final List<Long> kept = new ArrayList<>();
    private final List<KvBatch> waiting = new ArrayList<>();
    private boolean applies = true;

    private EventPlane plane(PlanePosition before) {
        final EventPlane plane =
                new EventPlane(
                        EventPlane.KNOWN_ONLY, position -> kept.add(position.upTo()), before);
        plane.keepsMessages();
        if (before == null) {
            plane.onRenumbered(STORE);
        } else {
            plane.onResumed(before);
        }
        return plane;
    }

    private static PlanePosition at(long number) {
        return new PlanePosition(STORE, number);
    }

    private EngineStream stream(String name) {
        return new EngineStream(SourceConfig.ofRouterEvents(name, 1, 4), this::offer, () -> 0);
    }

    /** A stream whose slot is as of an event. */
    private EngineStream restored(String name, long event) {
        final EngineStream stream = stream(name);
        stream.startAfter(
                new StreamStart(
                        event,
                        1,
                        true,
                        0,
                        new StreamMemory(RemovalRule.LAST_COPY, DecoderMemory.NONE)));
        return stream;
    }

    private boolean offer(KvBatch batch) {
        final KvBatch copy = new KvBatch();
        copy.copyFrom(batch);
        waiting.add(copy);
        return !applies || apply();
    }

    private boolean apply() {
        waiting.forEach(batch -> batch.listener().applied(batch.operations()));
        waiting.clear();
        return true;
    }

    private static void pass(EventPlane plane, long number, long worker, long id) {
        final KvBatch batch = new KvBatch();
        batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
        batch.addStored(true, 0, new long[] {id}, new long[] {1_000 + id}, 1);
        final byte[] bytes = RouterEventWriter.json(worker, 0, id, batch, batch.first());
        plane.onKept(bytes, 0, bytes.length, number, EventPlane.NO_PUBLISHER);
    }

    private static void keep(EventPlane plane) {
        plane.settle();
        plane.keep();
    }

    @Test
    void itIsWhatTheIndexHasNotWhatHasArrivedAndIsSaidOnce() {
        final EventPlane plane = plane(null);
        assertNull(plane.positionOrNull());
        keep(plane); // that nothing is there yet, and of which store
        plane.register(KNOWN, 0, stream("w"));
        pass(plane, 1, KNOWN, 1);
        pass(plane, 2, KNOWN, 2);
        keep(plane);
        keep(plane);
        applies = false;
        pass(plane, 3, KNOWN, 3);
        keep(plane);
        assertEquals(List.of(0L, 2L), kept);
        apply();
        keep(plane);
        assertEquals(List.of(0L, 2L, 3L), kept);
        assertEquals(at(3), plane.positionOrNull());
    }

    @Test
    void whatIsLeftOutOfWorkersThatNobodyExpectsDoesNotKeepItBack() {
        final EventPlane plane = plane(null);
        plane.register(KNOWN, 0, stream("w"));
        pass(plane, 1, OTHER, 1);
        pass(plane, 2, KNOWN, 1);
        keep(plane);
        assertEquals(List.of(2L), kept);
    }

    @Test
    void whatIsLeftOutOfAnExpectedWorkerKeepsItBackUntilThatIsThereOrGivenUp() {
        final EventPlane plane = plane(at(10));
        plane.expect(OTHER, 0);
        plane.expect(OTHER + 1, 0);
        plane.register(KNOWN, 0, restored("w", 5), at(10));
        pass(plane, 11, KNOWN, 6);
        pass(plane, 12, OTHER, 3);
        pass(plane, 13, OTHER + 1, 3);
        pass(plane, 14, KNOWN, 7);
        keep(plane);
        assertEquals(List.of(11L), kept);
        plane.expectNoMore(OTHER + 1, 0);
        keep(plane);
        assertEquals(List.of(11L), kept, "the other one is still expected");
        plane.register(OTHER, 0, restored("o", 2), at(10));
        assertEquals(List.of(11L, 10L), kept, "taken back before its slot has a name");
        assertEquals(10, plane.beginsAgainAfter(), "it has all up to there, so have all others");
        pass(plane, 11, KNOWN, 6);
        pass(plane, 12, OTHER, 3);
        keep(plane);
        assertEquals(List.of(11L, 10L, 12L), kept);
        assertEquals(3, plane.status().events(), "of the first two nothing twice");
    }

    @Test
    void aWorkerThatWasNotRestoredMayHaveSpokenBeforeAndAllIsPassedAgain() {
        final EventPlane plane = plane(at(10));
        plane.register(KNOWN, 0, restored("w", 5), at(10));
        assertFalse(plane.isAgainWanted(), "it has all up to there");
        plane.register(OTHER, 0, stream("new"));
        assertEquals(List.of(0L), kept);
        pass(plane, 11, OTHER, 7); // before it begins again
        keep(plane);
        assertEquals(List.of(0L), kept);
        assertEquals(0, plane.beginsAgainAfter());
        for (int i = 1; i <= 10; i++) {
            pass(plane, i, i % 2 == 0 ? KNOWN : OTHER, i / 2 + i % 2);
        }
        keep(plane);
        assertEquals(List.of(0L, 10L), kept);
        assertEquals(5, plane.status().events(), "those of the new one alone");
        plane.register(OTHER + 1, 0, stream("another new one"));
        assertFalse(plane.isAgainWanted(), "all has been read by now, and it has not spoken");
    }

    @ParameterizedTest
    @CsvSource({"10, false", "12, false", "9, true"})
    void aWorkerThatWasRestoredLessFarHasPassedAgainWhatItLacks(long seen, boolean again) {
        final EventPlane plane = plane(at(10));
        plane.register(KNOWN, 0, restored("w", 5), at(seen));
        assertEquals(again, plane.isAgainWanted());
        assertEquals(again ? seen : EventPlane.NOT_AGAIN, plane.beginsAgainAfter());
    }

    @Test
    void aRestoredWorkerThatIsRemovedAndComesAgainHasAllPassedAgain() {
        final EventPlane plane = plane(at(0)); // a position of a slot alone may be ahead of it
        plane.register(KNOWN, 0, restored("w", 5), at(6));
        plane.remove(KNOWN, 0);
        plane.register(KNOWN, 0, stream("w, and its slot is empty"));
        assertTrue(plane.isAgainWanted());
    }

    @Test
    void positionsInAStoreThatIsNoMoreMeanNothing() {
        final EventPlane plane = plane(at(10));
        plane.register(KNOWN, 0, restored("before", 5), at(10));
        plane.onRenumbered(STORE + 1);
        plane.register(OTHER, 0, restored("after", 5), at(10));
        assertFalse(plane.isAgainWanted(), "all that there is comes now");
        pass(plane, 1, KNOWN, 6);
        pass(plane, 2, OTHER, 6);
        keep(plane);
        assertEquals(2, plane.status().events());
        assertEquals(new PlanePosition(STORE + 1, 2), plane.positionOrNull());
    }

    @Test
    void aReconnectionTakesNothingBack() {
        final EventPlane plane = plane(at(10));
        plane.register(KNOWN, 0, restored("w", 5), at(10));
        pass(plane, 11, KNOWN, 6);
        keep(plane);
        plane.onDisconnected("lost");
        assertEquals(EventPlane.NOT_AGAIN, plane.beginsAgainAfter());
        plane.onCaughtUp();
        keep(plane);
        assertEquals(List.of(11L), kept);
    }

    @Test
    void thereIsNoPositionWithoutAStore() {
        assertThrows(IllegalArgumentException.class, () -> new PlanePosition(0, 1));
        assertThrows(IllegalArgumentException.class, () -> new PlanePosition(1, -1));
    }
}
