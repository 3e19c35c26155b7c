package io.kvasir.opstreams.generate;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Values at the ends of their ranges, and times that a stream cannot have. */
class GeneratorLimitsTest {
    @TempDir private Path dir;

    private static GeneratorOptions options(
            double speedUp, double timestampUs, double prefillRate, double interTokenMs) {
        return new GeneratorOptions(
                2,
                500,
                16,
                64,
                1,
                speedUp,
                timestampUs,
                prefillRate,
                interTokenMs,
                64,
                true,
                1,
                7,
                false);
    }

    private static GeneratorOptions chunks(int chunkTokens) {
        return new GeneratorOptions(
                2, 500, 1, 64, 1, 1, 1000, 20000, 15, chunkTokens, true, 1, 7, false);
    }

    private void assertTooFar(GeneratorOptions options) {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                StreamGenerator.generate(
                                        SmallTrace.requests(12), options, dir.resolve("far")));
        assertTrue(refused.getMessage().contains("2^53 us"), refused.getMessage());
    }

    @ParameterizedTest
    @CsvSource({
        "1e-300, 1000, 20000, 15",
        "1, 1e300, 20000, 15",
        "1e-300, 1e300, 20000, 15",
        "1, 1000, 1e-300, 15",
        "1, 1000, 20000, 1e300",
    })
    void timesThatNoStreamCanHaveAreRefused(
            double speedUp, double timestampUs, double prefillRate, double interTokenMs) {
        assertTooFar(options(speedUp, timestampUs, prefillRate, interTokenMs));
    }

    @Test
    void aChunkLargerThanEveryPromptIsTheWholePrompt() throws IOException {
        final Path whole = dir.resolve("whole");
        final Path most = dir.resolve("most");
        StreamGenerator.generate(SmallTrace.requests(24), chunks(1 << 20), whole);
        StreamGenerator.generate(SmallTrace.requests(24), chunks(Integer.MAX_VALUE), most);
        assertArrayEquals(Files.readAllBytes(whole), Files.readAllBytes(most));
    }
}
