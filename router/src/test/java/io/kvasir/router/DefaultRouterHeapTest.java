package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A router with default settings needs no more than 8 MiB of heap. */
class DefaultRouterHeapTest {
    private static final int ROUTERS = 10;

    /** Ten routers in a JVM that has 8 MiB for each and 16 for itself. */
    @Test
    void tenDefaultRoutersFitIntoASmallHeap() throws Exception {
        final Process child =
                new ProcessBuilder(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-Xmx" + (ROUTERS * 8 + 16) + "m",
                                "--enable-native-access=ALL-UNNAMED",
                                "-cp",
                                System.getProperty("java.class.path"),
                                TenRouters.class.getName())
                        .redirectErrorStream(true)
                        .start();
        final String output =
                new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(child.waitFor(60, TimeUnit.SECONDS), output);
        assertEquals(0, child.exitValue(), output);
    }

    /** Builds the routers and books with each. */
    static final class TenRouters {
        private TenRouters() {}

        public static void main(String[] args) throws RouteException {
            final List<KvRouter> routers = new ArrayList<>();
            for (int i = 0; i < ROUTERS; i++) {
                final KvRouter router = KvRouter.builder().build();
                routers.add(router);
                router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
                final RouteRequest request = router.newRequest().tokens(new int[64], 64);
                router.reserve(request, new Decision()).close();
            }
            routers.forEach(KvRouter::close);
        }
    }
}
