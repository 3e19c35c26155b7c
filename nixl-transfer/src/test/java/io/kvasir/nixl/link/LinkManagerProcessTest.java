package io.kvasir.nixl.link;

import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.nio.file.Path;

/** Two JVMs over shared memory; over NIXL see {@code RealNixlTransferTest}. */
class LinkManagerProcessTest {
    @Tag("trials")
    @Test
    void aLinkIsKeptUpThroughKillsAndStops() throws Exception {
        final String seed = Long.toString(Seeds.next("aLinkIsKeptUp"));
        final Path folder = Loopbacks.folder();
        KeptPeers.main(
                new String[] {
                    "loopback", Integer.toString(Trials.of(1, 30)), seed, folder.toString()
                });
        new LoopbackTransport("sweeper", Loopbacks.config(folder)).close();
        Loopbacks.deleteEmpty(folder);
    }
}
