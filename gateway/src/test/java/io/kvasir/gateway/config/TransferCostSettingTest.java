package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.disagg.TransferCosts;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** The spellings of {@code transfer-cost} that the documents show. */
class TransferCostSettingTest {
    private static final List<TransferCosts.Entry> WANTED =
            List.of(
                    new TransferCosts.Entry("rack", 0.05),
                    new TransferCosts.Entry("*", Double.POSITIVE_INFINITY));

    @TempDir private Path dir;

    private static GatewayConfig.Builder builder() {
        return GatewayConfig.builder().set(GatewaySettings.MODEL, "m");
    }

    private static void assertWanted(GatewayConfig.Builder builder) {
        assertEquals(WANTED, builder.build().get(GatewaySettings.TRANSFER_COSTS));
    }

    @Test
    void aFlagIsRepeated() {
        assertWanted(
                builder().flag(GatewaySettings.TRANSFER_COSTS, List.of("rack:0.05", "*:never")));
    }

    @Test
    void aVariableHasWords() {
        assertWanted(builder().environment(Map.of("KVASIR_TRANSFER_COST", "rack:0.05 *:never")));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "transfer-cost: ['rack:0.05', '*:never']",
                "transfer-cost:\n  - rack:0.05\n  - '*:never'"
            })
    void aFileHasAList(String yaml) throws IOException {
        assertWanted(builder().file(write(yaml)));
    }

    @Test
    void aModelHasSemicolons() {
        final GatewayConfig config =
                builder()
                        .flag(
                                GatewaySettings.MODELS,
                                List.of("name=n,transfer-cost=rack:0.05;*:never"))
                        .build();
        assertEquals(WANTED, config.models().getLast().get(GatewaySettings.TRANSFER_COSTS));
    }

    @Test
    void commasAreRefusedEverywhereWithTheCause() throws IOException {
        final String text = "rack:0.05,*:never";
        final Path file = write("transfer-cost: ['" + text + "']");
        assertSaysToRepeat(() -> builder().flag(GatewaySettings.TRANSFER_COSTS, List.of(text)));
        assertSaysToRepeat(() -> builder().environment(Map.of("KVASIR_TRANSFER_COST", text)));
        assertSaysToRepeat(() -> builder().file(file));
    }

    private interface Reading {
        void run() throws IOException;
    }

    private static void assertSaysToRepeat(Reading reading) {
        final String message =
                assertThrows(IllegalArgumentException.class, reading::run).getMessage();
        assertTrue(message.contains("is not one LABEL:BLOCKS"), message);
        assertTrue(message.contains("repeat the option"), message);
    }

    private Path write(String yaml) throws IOException {
        return Files.writeString(dir.resolve("kvasir.yaml"), yaml);
    }
}
