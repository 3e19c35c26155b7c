package io.kvasir.nixl.link;

import io.kvasir.nixl.loopback.LoopbackTransport;
import io.kvasir.nixl.loopback.Loopbacks;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.nio.file.Path;

/** Two JVMs over shared memory; over NIXL see {@code RealNixlTransferTest}. */
class LinkManagerProcessTest {
    @Test
    void aLinkIsKeptUpThroughKillsAndStops() throws Exception {
        keepUp(3);
    }

    @Tag("integration") // takes a minute
    @Test
    void aLinkIsKeptUpThroughManyKillsAndStops() throws Exception {
        keepUp(30);
    }

    private static void keepUp(int rounds) throws Exception {
        final String seed = Long.toString(Seeds.next("aLinkIsKeptUp"));
        final Path folder = Loopbacks.folder();
        KeptPeers.main(
                new String[] {"loopback", Integer.toString(rounds), seed, folder.toString()});
        new LoopbackTransport("sweeper", Loopbacks.config(folder)).close();
        Loopbacks.deleteEmpty(folder);
    }
}
