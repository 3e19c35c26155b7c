package io.kvasir.pipeline.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.source.Captures;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;

/** SGLang's load reports, as recorded and as they must not be. */
class LoadStatTest {
    private final LoadStat load = new LoadStat();

    private boolean read(byte[] bytes) {
        return load.read(bytes, 0, bytes.length);
    }

    private static List<ZcapRecord> recorded() {
        return Captures.messages("sglang-0.5.23-load.zcap");
    }

    private long[] numbers() {
        return new long[] {load.running(), load.waiting(), load.usedTokens(), load.tokens()};
    }

    @Test
    void whatAnEngineHasSentIsRead() {
        final long[][] first = {
            {0, 0, 0, 4_096}, {0, 0, 0, 4_096}, {0, 0, 448, 4_096}, {4, 0, 464, 4_096}
        };
        for (int i = 0; i < first.length; i++) {
            assertTrue(read(recorded().get(i).payload()));
            assertArrayEquals(first[i], numbers());
        }
        assertTrue(recorded().stream().allMatch(record -> read(record.payload())));
    }

    @Test
    void aReportThatIsCutOffOrGoesOnIsNone() {
        final byte[] whole = recorded().get(3).payload();
        for (int length = 0; length < whole.length; length++) {
            assertFalse(load.read(whole, 0, length), "length " + length);
        }
        assertFalse(read(Arrays.copyOf(whole, whole.length + 1)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "95a84c6f61645374617400c0cd100000", // nil
                "95a84c6f616453746174cb40100000000000000000cd100000", // a fraction
                "94a84c6f616453746174000000", // too few
                "95a84c6f6164537461730000cd100000", // another name
                "dfffffffff", // a map that claims to be large
                "ddffffffffa84c6f61645374617400000000" // a list that does
            })
    void whatIsNoReportIsNotRead(String hex) {
        assertFalse(read(HexFormat.of().parseHex(hex)));
    }

    @Test
    void anyBytesAreReadWithoutHarm() {
        final Random random = new Random(Seeds.next("LoadStatTest"));
        final byte[] whole = recorded().get(3).payload();
        for (int i = 0; i < 20_000; i++) {
            final byte[] bytes = whole.clone();
            for (int n = random.nextInt(4); n >= 0; n--) {
                bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
            }
            read(bytes);
        }
    }
}
