package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nats.replica.NatsReplicaConfig;
import io.kvasir.nats.replica.NatsReplicaLink;
import io.kvasir.nats.replica.WireForm;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.Registration;
import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.NatsCluster;
import io.kvasir.testsupport.NatsServer;
import io.nats.client.Connection;
import io.nats.client.KeyValue;
import io.nats.client.api.KeyValueConfiguration;
import io.nats.client.api.KeyValueEntry;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;

/** One of three servers hangs: its connections stay open, and nothing is answered. */
@Tag("integration") // starts servers
class HungNatsTest {
    private static final Duration TTL = Duration.ofSeconds(10);
    private static final String BUCKET = "workers";

    @TempDir Path folder;

    private NatsCluster cluster;
    private int hung;

    private void start() throws Exception {
        try {
            cluster = new NatsCluster(NatsServer.program(), folder, true);
        } catch (IOException e) {
            abort("skipped: no NATS: " + e.getMessage());
        }
    }

    @AfterEach
    void stop() throws Exception {
        if (cluster != null) {
            cluster.servers().get(hung).goOn();
            cluster.close();
        }
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        Eventually.until(what, () -> holds(condition));
    }

    private static boolean holds(Callable<Boolean> condition) throws Exception {
        try {
            return condition.call();
        } catch (IOException e) {
            return false; // no leader yet
        }
    }

    private NatsServer server(int number) {
        return cluster.servers().get(number % cluster.servers().size());
    }

    /** Of a bucket that all servers keep, the number of the server that leads it. */
    private static int leader(Connection connection) throws Exception {
        final String name =
                connection
                        .jetStreamManagement()
                        .getStreamInfo("KV_" + BUCKET)
                        .getClusterInfo()
                        .getLeader();
        return Integer.parseInt(name.substring(1));
    }

    @Test
    void aRegistrationIsRenewedByAnotherServer() throws Exception {
        start();
        final Connection first = Patient.connect(server(0).url());
        await(
                "the bucket",
                () -> {
                    first.keyValueManagement()
                            .create(
                                    KeyValueConfiguration.builder()
                                            .name(BUCKET)
                                            .replicas(3)
                                            .ttl(TTL)
                                            .build());
                    return true;
                });
        final int leader = leader(first);
        first.close();
        hung = (leader + 1) % cluster.servers().size();
        final Connection leading = Patient.connect(server(leader).url());
        try (Registrar registrar =
                new Registrar(new NatsStore(NatsAccess.of(server(hung).url()), BUCKET, TTL))) {
            final Registration worker =
                    registrar
                            .registerModel(
                                    Registration.builder(
                                                    new InstanceId("ns", "c", "e", "a"),
                                                    "m",
                                                    URI.create("http://h:1"))
                                            .build(),
                                    Duration.ZERO)
                            .registration();
            server(hung).hang();
            final KeyValue bucket = leading.keyValue(BUCKET);
            final String key = worker.id().key().replace('/', '.');
            final long before = bucket.get(key).getRevision();
            await(
                    "two renewals",
                    () -> {
                        final KeyValueEntry now = bucket.get(key);
                        return now != null && now.getRevision() > before + 1;
                    });
            assertEquals(worker, Registration.decode(bucket.get(key).getValue()));
        } finally {
            leading.close();
        }
    }

    @Test
    void replicaSyncFindsAnotherServer() throws Exception {
        start();
        final AtomicInteger received = new AtomicInteger();
        try (NatsReplicaLink atHung = link(0);
                NatsReplicaLink other = link(1)) {
            atHung.start(_ -> received.getAndIncrement());
            other.start(_ -> {});
            final ReplicaMessage message = new ReplicaMessage.Leaving(new ReplicaOrigin(1, 1));
            await("the first message", () -> other.send(message) && received.get() > 0);
            server(0).hang();
            Thread.sleep(100); // what is on its way arrives
            final int before = received.get();
            await("another one", () -> other.send(message) && received.get() > before);
            await("no problem", () -> atHung.problem().isEmpty());
        }
    }

    private NatsReplicaLink link(int server) {
        return new NatsReplicaLink(
                new NatsReplicaConfig(
                        NatsAccess.of(server(server).url()),
                        "ns",
                        "backend",
                        "",
                        WireForm.MSGPACK,
                        16));
    }
}
