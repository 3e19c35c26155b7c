package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.ChildJvm;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;

/** Routers of one JVM do not know of each other, however they come and go. */
class ManyRoutersTest {
    private static void openAndClose(int changes) throws IOException, InterruptedException {
        final String seed = Long.toString(Seeds.next("ManyRoutersTest"));
        final String output =
                ChildJvm.run(
                        ChildJvm.unchecked(), ManyRouters.class, Integer.toString(changes), seed);
        assertTrue(output.contains(changes + " changes"), output);
    }

    @Test
    void tenRoutersOpenAndCloseWithCallersInside() throws IOException, InterruptedException {
        openAndClose(50);
    }

    @Tag("integration") // a race: the more changes, the more is seen
    @Test
    void tenRoutersOpenAndCloseOftenWithCallersInside() throws IOException, InterruptedException {
        openAndClose(2_000);
    }
}
