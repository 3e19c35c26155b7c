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
    private static final Descriptors EVEN = descriptors(region(64, COUNT));
    private static final Descriptors LONGER = descriptors(region(128, COUNT));
    private static final Descriptors MIXED = descriptors(region(64, 60), region(128, 40));

    private static KvRegion region(long bytes, int blocks) {
        return new KvRegion("r", 0, NixlMemory.DRAM, 0, 4096, bytes, bytes, blocks);
    }

    private static Descriptors descriptors(KvRegion... regions) {
        return Descriptors.ofBlocks(List.of(regions));
    }

    private static int[] indices() {
        final int[] indices = new int[COUNT];
        Arrays.setAll(indices, i -> i);
        return indices;
    }

    private static void refused(
            String why, Descriptors local, int[] localIndices, Descriptors remote, int[] indices) {
        final KvTransportException refusal =
                Loopbacks.refused(
                        Kind.INVALID,
                        why,
                        () ->
                                RequestCheck.indices(
                                        "end", local, localIndices, remote, indices, 0, COUNT));
        assertEquals("end: " + why, refusal.getMessage());
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, COUNT, Integer.MAX_VALUE, Integer.MIN_VALUE})
    void aPlaceThatIsNotThereIsNamedWhereverItStands(int index) {
        for (Descriptors list : List.of(EVEN, MIXED)) {
            for (int i = 0; i < COUNT; i++) {
                final int[] wrong = indices();
                wrong[i] = index;
                refused(
                        "localIndices[" + i + "]=" + index + ", the list has indices 0..99",
                        list,
                        wrong,
                        list,
                        indices());
                refused(
                        "remoteIndices[" + i + "]=" + index + ", the list has indices 0..99",
                        list,
                        indices(),
                        list,
                        wrong);
            }
        }
    }

    @Test
    void aPairOfDifferentLengthsIsNamed() {
        refused(
                "descriptors 0 differ: local index 0 has 64 bytes, remote index 0 has 128",
                EVEN,
                indices(),
                LONGER,
                indices());
        refused(
                "descriptors 60 differ: local index 60 has 128 bytes, remote index 60 has 64",
                MIXED,
                indices(),
                EVEN,
                indices());
        final int[] swapped = indices();
        swapped[10] = 99;
        refused(
                "descriptors 10 differ: local index 99 has 128 bytes, remote index 10 has 64",
                MIXED,
                swapped,
                MIXED,
                indices());
    }

    @Test
    void indicesBeforeTheFirstAndAfterTheCountAreNotRead() {
        final int[] indices = indices();
        indices[0] = COUNT;
        indices[99] = -1;
        assertDoesNotThrow(
                () -> RequestCheck.indices("end", MIXED, indices, MIXED, indices, 1, COUNT - 2));
        Loopbacks.refused(
                Kind.INVALID,
                "localIndices[99]=-1",
                () -> RequestCheck.indices("end", MIXED, indices, MIXED, indices, 1, COUNT - 1));
        Loopbacks.refused(
                Kind.INVALID,
                "localIndices[0]=100",
                () -> RequestCheck.indices("end", MIXED, indices, MIXED, indices, 0, COUNT - 1));
        Loopbacks.refused(
                Kind.INVALID,
                "first=-1, count=1",
                () -> RequestCheck.indices("end", EVEN, indices, EVEN, indices, -1, 1));
        Loopbacks.refused(
                Kind.INVALID,
                "first=99, count=2",
                () -> RequestCheck.indices("end", EVEN, indices, EVEN, indices, 99, 2));
        Loopbacks.refused(
                Kind.INVALID,
                "count=101, indices given: local=100, remote=100",
                () -> RequestCheck.indices("end", EVEN, indices, EVEN, indices, 0, COUNT + 1));
        Loopbacks.refused(
                Kind.INVALID,
                "count=0",
                () -> RequestCheck.indices("end", EVEN, indices, EVEN, indices, 0, 0));
    }
}
