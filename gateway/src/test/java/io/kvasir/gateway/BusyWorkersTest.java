package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Eventually;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.Worker;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Workers beyond a limit of load. */
class BusyWorkersTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":64}}";
    private static final String PROMPT = "{\"prompt\":[" + "7,".repeat(63) + "7]}";

    private final CountDownLatch goOn = new CountDownLatch(1);

    private void answer(FakeEngine.Call call) throws IOException, InterruptedException {
        goOn.await(10, TimeUnit.MINUTES);
        call.json(200, ANSWER);
    }

    @Test
    void whereAllAreBusyRequestsAreRefusedUntilOneIsNot() throws Exception {
        try (FakeEngine engine = new FakeEngine(this::answer);
                GatewayServer gateway =
                        GatewayServer.start(
                                Gateways.config(
                                                WorkerConfig.parse(
                                                        engine.url()
                                                                + ",name=w,max-batched-tokens=32"))
                                        .set(RouterSettings.BUSY_PREFILL_SHARE, 1.5)
                                        .build())) {
            Gateways.awaitContact(gateway);
            final Worker worker = gateway.router().workers().getFirst();
            assertEquals(32, worker.batchTokens());
            final CompletableFuture<HttpResponse<String>> first =
                    Gateways.postAsync(gateway, "/v1/completions", PROMPT);
            Eventually.holds("it waits", () -> worker.prefillTokens() == 64);
            final HttpResponse<String> refused = Gateways.post(gateway, "/v1/completions", PROMPT);
            assertEquals(503, refused.statusCode());
            assertTrue(refused.body().contains("all_workers_busy"), refused.body());
            assertFalse(refused.body().contains("threshold"), "limits are the operator's");
            goOn.countDown();
            assertEquals(200, first.get(1, TimeUnit.MINUTES).statusCode());
            Eventually.holds("it is idle", () -> worker.prefillTokens() == 0);
            assertEquals(200, Gateways.post(gateway, "/v1/completions", PROMPT).statusCode());
        }
    }
}
