package io.kvasir.gateway.disagg;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.testsupport.LoopbackNixl;

import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

class ReleaseChoiceTest {
    private static BlockRelease open(String library) {
        return ReleaseChoice.open(
                GatewayConfig.builder()
                        .set(GatewaySettings.MODEL, "m")
                        .set(GatewaySettings.NIXL_LIBRARY, library)
                        .build());
    }

    private static void assertLeftToTheLease(BlockRelease release) {
        try (release) {
            release.hold(Prefills.params("e", "r", 1)).free();
            assertEquals(1, release.counts().left().get(LeaseReason.NO_LIBRARY));
            assertEquals(1, release.counts().held());
        }
    }

    @Test
    void withoutALibraryBlocksAreLeftToTheLease(@TempDir Path folder) throws IOException {
        assertLeftToTheLease(open(GatewaySettings.NIXL_OFF));
        assertLeftToTheLease(open(folder.resolve("absent.so").toString()));
        final Path garbage = Files.writeString(folder.resolve("garbage.so"), "no library");
        assertLeftToTheLease(open(garbage.toString()));
    }

    @Test
    void aLibraryThatCanBeLoadedIsUsed(@TempDir Path folder) throws IOException {
        final Path file = LoopbackNixl.unpack(folder);
        Assumptions.assumeTrue(file != null, LoopbackNixl.ABSENT);
        try (BlockRelease release = open(file.toString())) {
            release.hold(Prefills.json("{}")).free();
        }
    }
}
