package io.kvasir.cli.engines;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.disagg.BlockRelease;
import io.kvasir.gateway.disagg.BlockReleaseCounts;
import io.kvasir.panama.nixl.NixlAvailability;
import io.kvasir.router.disagg.PrefillBlocks;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** The gateway frees the blocks of a real vLLM prefill server whose decode never comes. */
@Tag("real-engine")
class RealBlockReleaseTest {
    private static final int PROMPT = 7 * VllmServer.BLOCK_SIZE + 1;
    private static final long LEASE_NS = TimeUnit.SECONDS.toNanos(30); // vLLM's default

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static VllmServer server;
    private static BlockRelease release;

    @BeforeAll
    static void start() throws Exception {
        final Path folder = VllmServer.installed();
        final NixlAvailability.Available nixl = VllmServer.nixl(folder);
        server = new VllmServer(folder, logs.resolve("prefill.log")).transferring();
        server.start();
        server.awaitHealthy();
        release =
                BlockRelease.open(
                        GatewayConfig.builder()
                                .set(GatewaySettings.MODEL, VllmServer.MODEL)
                                .set(GatewaySettings.NIXL_LIBRARY, nixl.path())
                                .build());
    }

    @AfterAll
    static void stop() {
        if (release != null) {
            release.close();
        }
        if (server != null) {
            server.close();
        }
    }

    @Test
    void blocksWhoseDecodeNeverComesAreFreedLongBeforeTheLeaseEnds() throws Exception {
        for (int round = 0; round < 5; round++) {
            final long before = release.counts().released();
            final PrefillBlocks.Held held = release.hold(server.prefill(40 * round, PROMPT));
            assertTrue(server.isHolding());
            final long startNs = System.nanoTime();
            held.free();
            server.awaitUsage(false);
            final long tookNs = System.nanoTime() - startNs;
            System.out.printf(
                    "blocks whose decode never came were freed in %d ms%s%n",
                    TimeUnit.NANOSECONDS.toMillis(tookNs), round == 0 ? ", first contact" : "");
            assertTrue(tookNs < LEASE_NS / 2, "freed by the lease, not by the message");
            assertEquals(before + 1, release.counts().released());
            assertEquals(0, release.counts().held());
        }
    }

    @Test
    void heartbeatsKeepBlocksBeyondTheLease() throws Exception {
        final long beats = release.counts().heartbeats();
        final PrefillBlocks.Held held = release.hold(server.prefill(500, PROMPT));
        final long startNs = System.nanoTime();
        while (System.nanoTime() - startNs < LEASE_NS * 3 / 2) {
            assertTrue(server.isHolding(), "the lease was prolonged");
            LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(1));
        }
        final BlockReleaseCounts counts = release.counts();
        System.out.printf(
                "held %d s by %d heartbeats%n",
                TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - startNs),
                counts.heartbeats() - beats);
        assertEquals(1, counts.held());
        held.free();
        server.awaitUsage(false);
    }
}
