package io.kvasir.nats.events;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Random;

class RadixStateTest {
    private static final String ENTRIES = "0300000000000000";
    private static final String SEVEN = "0700000000000000";
    private static final String EIGHT = "0800000000000000";

    /** Blocks 101, 102 of worker 7 at the root, 103 behind 102, and 104 of worker 8, rank 1. */
    private static String golden(String start, String objects) {
        return ENTRIES
                + SEVEN
                + "0000000000000000"
                + "00000000"
                + "00"
                + start
                + "0200000000000000"
                + "6500000000000000"
                + "0b00000000000000"
                + objects
                + "6600000000000000"
                + "0c00000000000000"
                + objects
                + "00000000"
                + SEVEN
                + "0100000000000000"
                + "00000000"
                + "01"
                + "6600000000000000"
                + start
                + "0100000000000000"
                + "6700000000000000"
                + "0d00000000000000"
                + objects
                + "00000000"
                + EIGHT
                + "0200000000000000"
                + "00000000"
                + "00"
                + start
                + "0100000000000000"
                + "6800000000000000"
                + "0b00000000000000"
                + objects
                + "01000000";
    }

    private static byte[] bytes(String start, String objects) {
        return HexFormat.of().parseHex(golden(start, objects));
    }

    @ParameterizedTest
    @CsvSource({"'', ''", "'', 00", "00, 00", "0105000000, 00"})
    void eachVersionIsRead(String start, String objects) throws Exception {
        final RadixState state = RadixState.read(bytes(start, objects));
        assertEquals(2, state.workers());
        try (PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
                IndexPipeline pipeline = new IndexPipeline(IndexPipelineConfig.defaults(), index)) {
            assertEquals(3, state.load(new EventPlaneWorker(7, 0), 1, pipeline));
            assertEquals(1, state.load(new EventPlaneWorker(8, 1), 2, pipeline));
            assertEquals(0, state.load(new EventPlaneWorker(8, 0), 3, pipeline));
            final StringBuilder runs = new StringBuilder();
            for (int slot = 1; slot <= 3; slot++) {
                final int of = slot;
                pipeline.visitRuns(slot, 0, 100, (depth, parent, engine, local, count) -> {});
                Eventually.holds("it is visited", () -> pipeline.backlog() == 0);
                pipeline.visitRuns(
                        slot,
                        0,
                        100,
                        (depth, parent, engine, local, count) ->
                                runs.append(of)
                                        .append(Arrays.toString(Arrays.copyOf(engine, count)))
                                        .append(Arrays.toString(Arrays.copyOf(local, count))));
            }
            assertEquals("1[101, 102, 103][11, 12, 13]2[104][11]", runs.toString());
        }
        assertEquals(1337, BlockHasher.BASE_SEED, "the seed of its local hashes");
    }

    @Test
    void whateverElseItIsIsRefusedAndNothingElseIsThrown() {
        final byte[] whole = bytes("00", "00");
        for (int length = 0; length < whole.length; length++) {
            final byte[] cut = Arrays.copyOf(whole, length);
            assertThrows(IOException.class, () -> RadixState.read(cut), "" + length);
        }
        final Random random = new Random(Seeds.next("RadixState"));
        for (int i = 0; i < 20_000; i++) {
            final byte[] changed = whole.clone();
            for (int n = random.nextInt(4); n >= 0; n--) {
                changed[random.nextInt(changed.length)] = (byte) random.nextInt();
            }
            try {
                RadixState.read(changed);
            } catch (IOException e) {
                assertEquals(
                        whole.length + " bytes of radix-state have no known form", e.getMessage());
            }
        }
    }
}
