package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.testing.FakeCollector;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.LeavingClients;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;

/**
 * Clients that leave at any byte, in any way, several requests on a connection, while workers
 * answer, stall or break off and requests wait and are tried again: nothing of them is left, and
 * each request is one line of the access log, one outcome in the metrics and the end of each
 * decision for it.
 */
class LeavingClientsModelTest {
    @TempDir Path folder;

    private final long seed = Seeds.next("LeavingClientsModelTest");
    private LeavingClients clients;

    private final FakeEngine a = new FakeEngine(this::serve);
    private final FakeEngine b = new FakeEngine(this::serve);

    private GatewayConfig.Builder config() {
        clients = new LeavingClients(seed, folder);
        return clients.configured(Gateways.config(a.worker("a"), b.worker("b")));
    }

    @Test
    void nothingIsLeftOfClientsAndEachRequestIsCountedOnce() throws Exception {
        try (a;
                b;
                FakeCollector collector = new FakeCollector()) {
            try (GatewayServer gateway = Gateways.started(collector.asked(config()))) {
                clients.comeAndLeave(gateway);
                clients.assertNothingIsLeft(gateway, List.of(a, b));
                clients.assertEachIsCountedOnce(gateway);
            }
            clients.assertTraced(collector);
            clients.assertNoViolation();
        }
    }

    @Test
    void aGatewayThatEndsAmongThemEndsEachOfThemOnce() throws Exception {
        final Random random = new Random(seed);
        try (a;
                b;
                GatewayServer gateway = Gateways.started(LeavingClients.ending(config(), random))) {
            clients.comeWhileItEnds(gateway, random);
            clients.assertAtRest(List.of(a, b));
            clients.assertLoggedOnce();
            clients.assertNoViolation();
        }
    }

    /** Treats an attempt by its prompt and how many there were before, as far as that can be. */
    private void serve(FakeEngine.Call call) throws IOException, InterruptedException {
        final Random random = clients.random(call);
        Thread.sleep(random.nextInt(4));
        LeavingClients.treat(call, random);
    }
}
