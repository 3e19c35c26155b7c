package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransportException.Kind;
import io.kvasir.panama.nixl.NixlMemory;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.List;

class RequestCheckTest {
    private static final int COUNT = 100;
    private static final Descriptors EVEN = pieces(region(64, COUNT));
    private static final Descriptors LONGER = pieces(region(128, COUNT));
    private static final Descriptors MIXED = pieces(region(64, 60), region(128, 40));

    private static KvRegion region(long bytes, int blocks) {
        return new KvRegion("r", 0, NixlMemory.DRAM, 0, 4096, bytes, bytes, blocks);
    }

    private static Descriptors pieces(KvRegion... regions) {
        return Descriptors.ofBlocks(List.of(regions));
    }

    private static int[] places() {
        final int[] places = new int[COUNT];
        Arrays.setAll(places, i -> i);
        return places;
    }

    private static void refused(
            String why, Descriptors local, int[] localPlaces, Descriptors remote, int[] places) {
        final KvTransportException refusal =
                Loopbacks.refused(
                        Kind.INVALID,
                        why,
                        () ->
                                RequestCheck.places(
                                        "end", local, localPlaces, remote, places, COUNT));
        assertEquals("end: " + why, refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, COUNT, Integer.MAX_VALUE, Integer.MIN_VALUE})
    void aPlaceThatIsNotThereIsNamedWhereverItStands(int place) {
        for (Descriptors list : List.of(EVEN, MIXED)) {
            for (int i = 0; i < COUNT; i++) {
                final int[] wrong = places();
                wrong[i] = place;
                refused(
                        "localPlaces[" + i + "]=" + place + ", the list has places 0..99",
                        list,
                        wrong,
                        list,
                        places());
                refused(
                        "remotePlaces[" + i + "]=" + place + ", the list has places 0..99",
                        list,
                        places(),
                        list,
                        wrong);
            }
        }
    }

    @Test
    void aPairOfDifferentLengthsIsNamed() {
        refused(
                "pieces 0 differ: local place 0 has 64 bytes, remote place 0 has 128",
                EVEN,
                places(),
                LONGER,
                places());
        refused(
                "pieces 60 differ: local place 60 has 128 bytes, remote place 60 has 64",
                MIXED,
                places(),
                EVEN,
                places());
        final int[] swapped = places();
        swapped[10] = 99;
        refused(
                "pieces 10 differ: local place 99 has 128 bytes, remote place 10 has 64",
                MIXED,
                swapped,
                MIXED,
                places());
    }

    @Test
    void placesBehindTheCountAreNotLookedAt() {
        final int[] places = places();
        places[99] = -1;
        assertDoesNotThrow(
                () -> RequestCheck.places("end", MIXED, places, MIXED, places, COUNT - 1));
        Loopbacks.refused(
                Kind.INVALID,
                "count=101, places given: local=100, remote=100",
                () -> RequestCheck.places("end", EVEN, places, EVEN, places, COUNT + 1));
        Loopbacks.refused(
                Kind.INVALID,
                "count=0",
                () -> RequestCheck.places("end", EVEN, places, EVEN, places, 0));
    }
}
