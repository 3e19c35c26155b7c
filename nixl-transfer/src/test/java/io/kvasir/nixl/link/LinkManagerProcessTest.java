package io.kvasir.nixl.link;

import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.nio.file.Path;

/** Two JVMs over shared memory; over NIXL see {@code RealNixlTransferTest}. */
class LinkManagerProcessTest {
    @Test
    void aLinkIsKeptUpThroughKillsAndStops() throws Exception {
        final String seed = Long.toString(Seeds.next("aLinkIsKeptUp"));
        final Path folder = Loopbacks.folder();
        KeptPeers.main(new String[] {"loopback", "6", seed, folder.toString()});
        new LoopbackTransport("sweeper", Loopbacks.config(folder)).close();
        Loopbacks.deleteEmpty(folder);
    }
}
