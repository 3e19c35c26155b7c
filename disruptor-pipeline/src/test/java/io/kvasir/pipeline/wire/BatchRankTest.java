package io.kvasir.pipeline.wire;

import static io.kvasir.pipeline.source.Messages.list;
import static io.kvasir.pipeline.source.Messages.pack;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

class BatchRankTest {
    private static final List<Object> EVENTS = List.of(Map.of("type", "AllBlocksCleared"));

    private final BatchRank ranks = new BatchRank();

    private long of(Object batch) {
        final byte[] bytes = pack(batch);
        final byte[] padded = new byte[bytes.length + 20];
        Arrays.fill(padded, (byte) 7);
        System.arraycopy(bytes, 0, padded, 10, bytes.length);
        return ranks.of(padded, 10, bytes.length);
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 5, 127, 128, 192, 256 + 5, 256 + 192, 65_536 + 5, 1L << 40})
    void theThirdElementIsTheRankWhateverItsLastByteIs(long rank) {
        assertEquals(5, of(list(1.5, EVENTS, 5)), "known from a batch before");
        assertEquals(rank, of(list(1.5, EVENTS, rank)));
        assertEquals(rank, of(list(null, EVENTS, rank, "more")));
    }

    @Test
    void itIsFoundInAStreamOfRanksAndBatchesWithout() {
        final long[] written = {5, 5, 192, 5, 261, 5, -1, -1, 192, -1, 5, 70_000, 5, 5, -1, 320};
        for (long rank : written) {
            assertEquals(rank, of(list(1.5, EVENTS, rank < 0 ? null : rank)));
        }
    }

    @Test
    void numbersWrittenLongerThanNeededAreReadAsWhole() {
        final byte[] one = pack(list(1.5, List.of(), 5));
        assertEquals(5, ranks.of(one, 0, one.length));
        for (String number : List.of("cc05", "cd0105", "ce00010005", "cf0000000100000005")) {
            final byte[] bytes = HexFormat.of().parseHex(number);
            final byte[] batch = Arrays.copyOf(one, one.length - 1 + bytes.length);
            System.arraycopy(bytes, 0, batch, one.length - 1, bytes.length);
            assertEquals(Long.parseLong(number.substring(2), 16), ranks.of(batch, 0, batch.length));
            assertEquals(5, ranks.of(one, 0, one.length));
        }
    }

    @Test
    void aMapNamesItBeforeOrBehindTheEvents() {
        for (String name : List.of("data_parallel_rank", "dp_rank", "attn_dp_rank")) {
            final Map<String, Object> before = new LinkedHashMap<>();
            before.put(name, 5);
            before.put("events", EVENTS);
            assertEquals(5, of(before));
            final Map<String, Object> behind = new LinkedHashMap<>();
            behind.put("events", EVENTS);
            behind.put(name, 6);
            assertEquals(6, of(behind));
        }
    }

    @Test
    void whatBeginsWithANameIsNoBatch() {
        assertEquals(5, of(list(1.5, EVENTS, 5)));
        assertEquals(BatchRank.NONE, of(list("LoadStat", 4, 1, 900, 1_000)));
        assertEquals(BatchRank.NONE, of(list("LoadStat", 4, 5)));
    }

    @Test
    void batchesWithoutOneHaveNone() {
        assertEquals(BatchRank.NONE, of(list(1.5, EVENTS)));
        assertEquals(BatchRank.NONE, of(list(1.5, EVENTS, null)));
        assertEquals(BatchRank.NONE, of(list(1.5, EVENTS, -1)));
        assertEquals(BatchRank.NONE, of(list(1.5, EVENTS, "5")));
        assertEquals(BatchRank.NONE, of(Map.of("events", EVENTS)));
        assertEquals(BatchRank.NONE, of("no batch"));
        assertEquals(BatchRank.NONE, ranks.of(new byte[0], 0, 0));
    }
}
