package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.core.index.CopyRule;
import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.SnapshotLockKind;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.metrics.GatewayMetrics;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.nats.events.JetStreamEventTransport;
import io.kvasir.nats.events.StreamForm;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.wire.ApplyListener;
import io.kvasir.pipeline.wire.KvBatch;
import io.kvasir.router.RouterStatus;
import io.kvasir.router.Worker;
import io.kvasir.router.state.SnapshotStatus;
import io.kvasir.testsupport.EtcdServer;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** Gateways, as {@code serve} makes them, over one event plane of a real NATS server. */
@Tag("integration") // starts servers
class SharedSnapshotsTest {
    private static final int EVENTS = 60;
    private static final long WORKER = 7;

    @TempDir static Path folder;

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final String namespace = "ns" + System.nanoTime();
    private long lastEvent;

    private GatewayConfig.Builder config() {
        return Gateways.config(WorkerConfig.parse("http://h:1,name=w,event-worker=" + WORKER))
                .set(GatewaySettings.NATS_URL, NATS.url())
                .set(GatewaySettings.NATS_NAMESPACE, namespace)
                .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.JETSTREAM)
                .set(GatewaySettings.SNAPSHOT_THRESHOLD, EVENTS - 1L);
    }

    /** The routers of one gateway and their workers. */
    private static final class Routers implements AutoCloseable {
        private final PoolRouters routers;
        private final Fleet fleet;

        Routers(GatewayConfig config) {
            routers = new PoolRouters(config);
            fleet = new Fleet(List.of(new UpstreamRegistry(config, routers)));
            new StaticDiscovery(config).start(fleet.listener("static"));
        }

        SnapshotStatus snapshots() {
            final RouterStatus status = routers.main().status();
            return status.snapshots().ofPlaneOrNull();
        }

        Worker worker() {
            return routers.main().workers().getFirst();
        }

        String metrics() throws IOException {
            final GatewayMetrics metrics = new GatewayMetrics();
            metrics.watch(fleet);
            return metrics.page(null).text();
        }

        @Override
        public void close() {
            fleet.close();
            routers.close();
        }
    }

    /** One block more with each event. */
    private void publish() throws IOException {
        try (JetStreamEventTransport transport =
                new JetStreamEventTransport(
                        new NatsAccess(NATS.url(), null, null, Duration.ofSeconds(20)),
                        EventSubjects.kvEvents(namespace, "backend", null),
                        StreamForm.EVENTS)) {
            for (int i = 0; i < EVENTS; i++) {
                final KvBatch batch = new KvBatch();
                batch.reset(0, 0, CopyRule.LAST_COPY, false, ApplyListener.NONE);
                final long name = ++lastEvent;
                batch.addStored(true, 0, new long[] {name}, new long[] {1_000 + name}, 1);
                transport.publish(WORKER, 0, name, batch);
            }
        }
    }

    private void aSecondGatewayKnowsWhatTheFirstHasSaved(GatewayConfig config) throws Exception {
        try (Routers first = new Routers(config)) {
            for (int n = 1; n <= 2; n++) {
                publish();
                final int taken = n;
                Eventually.holds("a snapshot", () -> first.snapshots().taken() >= taken);
            }
            final String page = first.metrics();
            assertTrue(
                    page.contains(
                            "kvasir_snapshots_total{kind=\"shared\",outcome=\"taken\"} "
                                    + first.snapshots().taken()),
                    page);
            assertTrue(page.contains("kvasir_snapshot_bytes{kind=\"shared\"} "), page);
            assertTrue(page.contains("kvasir_snapshot_age_seconds{kind=\"shared\"} "), page);
        }
        try (Routers second = new Routers(config)) {
            Eventually.holds("all", () -> second.worker().indexedBlocks() == 2 * EVENTS);
            Eventually.holds("exact", () -> second.worker().state() == IndexState.EXACT);
            assertEquals(1, second.snapshots().restoredWorkers());
            assertTrue(second.snapshots().restoredBlocks() >= EVENTS);
        }
    }

    @Test
    void aGatewayThatStartsKnowsWhatAnotherHasSaved() throws Exception {
        aSecondGatewayKnowsWhatTheFirstHasSaved(config().build());
    }

    @Test
    void theLockMayBeInEtcd() throws Exception {
        final EtcdServer etcd;
        try {
            etcd = EtcdServer.in(EtcdServer.program(), Files.createDirectory(folder.resolve("e")));
            etcd.start();
        } catch (IOException e) {
            abort("skipped: no etcd: " + e.getMessage());
            return;
        }
        try (etcd) {
            aSecondGatewayKnowsWhatTheFirstHasSaved(
                    config().set(GatewaySettings.SNAPSHOT_LOCK, SnapshotLockKind.ETCD)
                            .set(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS, List.of(etcd.uri()))
                            .build());
        }
    }

    @Test
    void aLockInEtcdNeedsAnEtcd() {
        final GatewayConfig config =
                config().set(GatewaySettings.SNAPSHOT_LOCK, SnapshotLockKind.ETCD).build();
        final GatewayException refused =
                assertThrows(GatewayException.class, () -> new PoolRouters(config));
        assertTrue(refused.getMessage().contains("no endpoint of etcd"), refused.getMessage());
    }

    @Test
    void aResetBeginsWithNothing() throws Exception {
        try (Routers first = new Routers(config().build())) {
            publish();
            Eventually.holds("a snapshot", () -> first.snapshots().taken() >= 1);
        }
        try (Routers reset =
                new Routers(config().set(GatewaySettings.RESET_STATES, true).build())) {
            assertEquals(0, reset.snapshots().restoredWorkers());
            publish();
            Eventually.holds("what is new", () -> reset.worker().indexedBlocks() == EVENTS);
        }
    }

    @Test
    void withoutAThresholdOrAJetStreamNothingIsShared() {
        try (Routers none =
                new Routers(config().set(GatewaySettings.SNAPSHOT_THRESHOLD, 0L).build())) {
            assertNull(none.snapshots());
        }
        try (Routers core =
                new Routers(
                        config().set(GatewaySettings.EVENT_PLANE, EventPlaneKind.NATS).build())) {
            assertNull(core.snapshots());
        }
    }

    /** A gateway serves without what it cannot read, and saves nothing over it. */
    @Test
    void aGatewayThatFindsNoNatsStartsAllTheSame() {
        try (Routers alone =
                new Routers(config().set(GatewaySettings.NATS_URL, "nats://127.0.0.1:1").build())) {
            assertEquals(0, alone.snapshots().taken());
            assertEquals(1, alone.routers.main().workers().size());
        }
        final GatewayConfig reset =
                config().set(GatewaySettings.NATS_URL, "nats://127.0.0.1:1")
                        .set(GatewaySettings.RESET_STATES, true)
                        .build();
        assertThrows(GatewayException.class, () -> new PoolRouters(reset));
    }
}
