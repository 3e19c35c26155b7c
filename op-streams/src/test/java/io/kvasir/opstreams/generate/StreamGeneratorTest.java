package io.kvasir.opstreams.generate;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.opstreams.kvops.Figure;
import io.kvasir.opstreams.kvops.KvopsBench;
import io.kvasir.opstreams.kvops.KvopsHeader;
import io.kvasir.opstreams.kvops.KvopsResult;
import io.kvasir.opstreams.kvops.LiveMaximum;
import io.kvasir.opstreams.kvops.ReplayPlan;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;

class StreamGeneratorTest {
    @TempDir private Path dir;

    /** Hashes of what the format's first generator, kvgen, makes of the same twelve requests. */
    @ParameterizedTest
    @CsvSource({
        "false, c3a50429fb29d198ccee5e1c9519bf4ff5e87b335ac20995169762ac899e0b8d",
        "true, d64d6f64abec4e8102d183b60d4d67d07a6b5fc5de3abba40d501553e5d7171e"
    })
    void theBytesAreThoseOfTheReferenceGenerator(boolean salted, String sha256)
            throws IOException, NoSuchAlgorithmException {
        final Path out = dir.resolve("golden.kvops");
        final StreamGenerator.Summary made =
                StreamGenerator.generate(
                        SmallTrace.requests(12), SmallTrace.options(3, 20, salted), out);
        assertEquals(66, made.livePairs());
        assertEquals(54, made.liveBlocks());
        assertEquals(66, made.overcommitted());
        assertEquals(0.5775, made.hitRatio(), 0.00005);
        assertEquals(
                sha256,
                HexFormat.of()
                        .formatHex(
                                MessageDigest.getInstance("SHA-256")
                                        .digest(Files.readAllBytes(out))));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theIndexAnswersEveryQueryOfAGeneratedStream(boolean salted)
            throws IOException, InterruptedException {
        final Path out = dir.resolve("small.kvops");
        final StreamGenerator.Summary made = SmallTrace.write(out, salted);
        assertEquals(180, made.header().queries());
        assertTrue(made.header().removedBlocks() > 0, "nothing was evicted");
        assertTrue(made.hitRatio() > 0.2, "hit ratio " + made.hitRatio());
        assertEquals(salted, made.header().has(KvopsHeader.SALTED_NAMES));

        final KvopsResult result =
                new KvopsBench(0, List.of(), line -> {}).run(ReplayPlan.of(out).withWarmUp(0));
        assertEquals(0, result.mismatches());
        assertEquals(0, result.median(Figure.REFUSED_STORES));
        assertEquals(made.livePairs(), (long) result.median(Figure.HELD_PAIRS));
    }

    @Test
    void theLiveMaximumIsBoundedByTheCachesUnlessTheyAreOvercommitted() throws IOException {
        final Path out = dir.resolve("bounded.kvops");
        final StreamGenerator.Summary made =
                StreamGenerator.generate(
                        SmallTrace.requests(60), SmallTrace.options(3, 4000, false), out);
        assertEquals(0, made.overcommitted());
        final LiveMaximum live = LiveMaximum.of(out);
        assertTrue(live.pairs() <= 3 * 4000, live.toString());
        assertEquals(made.livePairs(), live.lastPairs());
    }

    @Test
    void outputBlocksAreLeftOutOnRequest() throws IOException {
        final GeneratorOptions all = SmallTrace.options(2, 500, false);
        final GeneratorOptions prompts =
                new GeneratorOptions(
                        all.workers(),
                        all.capacity(),
                        all.block(),
                        all.traceBlock(),
                        all.copies(),
                        all.speedUp(),
                        all.timestampUs(),
                        all.prefillRate(),
                        all.interTokenMs(),
                        all.chunkTokens(),
                        false,
                        all.overlapWeight(),
                        all.seed(),
                        false);
        final KvopsHeader with =
                StreamGenerator.generate(SmallTrace.requests(20), all, dir.resolve("a")).header();
        final KvopsHeader without =
                StreamGenerator.generate(SmallTrace.requests(20), prompts, dir.resolve("b"))
                        .header();
        assertTrue(with.has(KvopsHeader.DECODE_STORES));
        assertTrue(!without.has(KvopsHeader.DECODE_STORES));
        assertTrue(without.storedBlocks() < with.storedBlocks());
    }

    @Test
    void anOptionOutOfRangeIsNamedWithItsValue() {
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> GeneratorOptions.defaults().withWorkers(0, 1));
        assertTrue(refused.getMessage().contains("workers"), refused.getMessage());
        assertTrue(refused.getMessage().contains("value=0"), refused.getMessage());
    }
}
