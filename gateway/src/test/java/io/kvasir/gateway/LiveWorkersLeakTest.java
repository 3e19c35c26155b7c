package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.UnixOperatingSystemMXBean;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

import java.lang.management.ManagementFactory;
import java.net.http.HttpResponse;
import java.util.concurrent.atomic.AtomicInteger;

/** What workers that come and go leave behind. */
@Isolated // counts threads and descriptors of the process
class LiveWorkersLeakTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";

    private final FakeEngine first = new FakeEngine(call -> call.json(200, ANSWER));
    private final FakeEngine second = new FakeEngine(call -> call.json(200, ANSWER));
    private GatewayServer gateway;

    @AfterEach
    void stop() {
        gateway.close();
        first.close();
        second.close();
    }

    private HttpResponse<String> complete() throws Exception {
        return Gateways.post(gateway, "/v1/completions", "{\"prompt\":[1]}");
    }

    @Test
    void aThousandRoundsLeakNothing() throws Exception {
        addAndRemoveAll(1_000);
    }

    @Tag("integration") // takes seconds
    @Test
    void tenThousandRoundsLeakNothing() throws Exception {
        addAndRemoveAll(10_000);
    }

    private void addAndRemoveAll(int rounds) throws Exception {
        final AtomicInteger kept = countProbes(first);
        final AtomicInteger removed = countProbes(second);
        gateway = Gateways.started(Gateways.config(first.worker("one")));
        for (int i = 0; i < 200; i++) {
            addAndRemove(i);
        }
        assertEquals(200, complete().statusCode());
        Eventually.holds(
                "the request has its series",
                () -> MetricsPage.of(gateway).sum("kvasir_requests_total") == 1);
        final long descriptors = descriptors();
        final int threads = Thread.activeCount();
        final long series = metrics().lines().count();
        for (int i = 200; i < 200 + rounds; i++) {
            addAndRemove(i);
        }
        assertEquals(200, complete().statusCode());
        Eventually.holds("descriptors", () -> descriptors() <= descriptors + 20);
        Eventually.holds("threads", () -> Thread.activeCount() <= threads + 8);
        Eventually.holds("series", () -> metrics().lines().count() <= series);
        awaitQuiet(removed, kept);
        assertEquals(1, gateway.router().workers().size());
    }

    private static AtomicInteger countProbes(FakeEngine engine) {
        final AtomicInteger probes = new AtomicInteger();
        engine.health =
                call -> {
                    probes.incrementAndGet();
                    call.json(200, "{}");
                };
        return probes;
    }

    /** Waits until no probe comes to one engine while three come to another one. */
    private static void awaitQuiet(AtomicInteger one, AtomicInteger other)
            throws InterruptedException {
        int before;
        do {
            before = one.get();
            final int until = other.get() + 3;
            Eventually.holds("probes of the other one", () -> other.get() >= until);
        } while (one.get() != before);
    }

    /** A rank of its own and an event endpoint in every tenth: both are opened and closed. */
    private void addAndRemove(int round) {
        final String name = "w" + round;
        final WorkerConfig worker =
                WorkerConfig.parse(
                        second.url()
                                + ",name="
                                + name
                                + (round % 10 == 0
                                        ? ",dp=2,events=tcp://127.0.0.1:" + (20_000 + round)
                                        : ""));
        assertTrue(gateway.admin().add(DiscoveredWorker.of("m", worker)));
        assertTrue(gateway.admin().remove(name));
    }

    private static long descriptors() {
        return ((UnixOperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
                .getOpenFileDescriptorCount();
    }

    private String metrics() {
        try {
            return Gateways.get(gateway, "/metrics").body();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
