package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.link.KeptPeers;
import io.kvasir.nixl.transport.NixlChild;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;

/** Two JVMs and the real NIXL between them. */
@Tag("integration")
class RealNixlTransferTest {
    /** Several times slower than shared memory: 10,000 are for {@code -Dkvasir.nixl.tcp.sets}. */
    static final int TCP_SETS = Integer.getInteger("kvasir.nixl.tcp.sets", 1_000);

    private static void moves(int sets, Map<String, String> environment, Path folder)
            throws IOException, InterruptedException {
        final String seed = Long.toString(Seeds.next("moves"));
        final String text =
                NixlChild.run(
                        TwoProcesses.class,
                        environment,
                        folder,
                        "nixl",
                        Integer.toString(sets),
                        seed);
        assertTrue(text.contains("sets " + sets), text);
    }

    @Test
    void tenThousandSetsOfBlocksOverSharedMemoryArriveWhole(@TempDir Path folder) throws Exception {
        moves(10_000, Map.of(), folder);
    }

    @Test
    void setsOfBlocksOverTcpArriveWhole(@TempDir Path folder) throws Exception {
        moves(TCP_SETS, NixlChild.TCP, folder);
    }

    @Test
    void peersThatDieAtRandomCostNeitherTheProcessNorABlock(@TempDir Path folder) throws Exception {
        final String seed = Long.toString(Seeds.next("peersThatDie"));
        final String text = NixlChild.run(DyingPeers.class, Map.of(), folder, "nixl", "6", seed);
        assertTrue(text.contains("rounds 6 restarts 6"), text);
    }

    @Test
    void aLinkIsKeptUpThroughKillsAndStops(@TempDir Path folder) throws Exception {
        final String seed = Long.toString(Seeds.next("aLinkIsKeptUp"));
        final String text =
                NixlChild.run(
                        KeptPeers.class, Map.of(), folder, "nixl", "9", seed, folder.toString());
        System.out.println(text);
        assertTrue(text.contains("rounds 9 resumed 9"), text);
    }
}
