package io.kvasir.nats.replica;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nats.Patient;
import io.kvasir.router.replica.ReplicaLink;
import io.kvasir.router.replica.ReplicaLinkContract;
import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.replica.ReplicaOrigin;
import io.kvasir.router.replica.ReplicaWorker;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.RunningNats;
import io.nats.client.Connection;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;

@Tag("integration")
class NatsReplicaLinkTest extends ReplicaLinkContract {
    private static final AtomicInteger TESTS = new AtomicInteger();
    private static final ReplicaOrigin A = new ReplicaOrigin(1, 1);

    @TempDir static Path folder;

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final String component = "component-" + TESTS.incrementAndGet();

    private static NatsServer newServer(String name) throws IOException {
        return NatsServer.in(NatsServer.program(), Files.createDirectory(folder.resolve(name)));
    }

    private NatsReplicaConfig config(String url, String endpoint) {
        return new NatsReplicaConfig(
                Patient.access(url), "test", component, endpoint, WireForm.MSGPACK, 16);
    }

    private NatsReplicaLink started(NatsReplicaLink link, Queue<ReplicaMessage> received) {
        link.start(received::add);
        await(link::isConnected, "a connection");
        return link;
    }

    @Override
    protected ReplicaLink open() {
        return new NatsReplicaLink(config(NATS.url(), ""));
    }

    @Override
    protected void awaitReady(ReplicaLink link) {
        await(((NatsReplicaLink) link)::isConnected, "a connection");
    }

    @Test
    void endpointsAndTheComponentHearEachOther() {
        final Queue<ReplicaMessage> atA = new ConcurrentLinkedQueue<>();
        final Queue<ReplicaMessage> atB = new ConcurrentLinkedQueue<>();
        final ReplicaMessage freed = freed(1);
        try (NatsReplicaLink a = started(new NatsReplicaLink(config(NATS.url(), "gen")), atA);
                NatsReplicaLink b = started(new NatsReplicaLink(config(NATS.url(), "")), atB)) {
            a.send(freed);
            b.send(freed);
            await(() -> atA.size() == 1 && atB.size() == 1, "each gets the other's, not its own");
        }
    }

    private static ReplicaMessage freed(long sequence) {
        return new ReplicaMessage.Freed(A, sequence, sequence, new ReplicaWorker(0, "w", 0));
    }

    @Test
    void aServerThatComesLaterOrAgainIsFoundAndWhatWasSentMeanwhileIsNotSaid()
            throws IOException, InterruptedException {
        final NatsServer own = newServer("restarted");
        own.start();
        final Queue<ReplicaMessage> atB = new ConcurrentLinkedQueue<>();
        try (NatsReplicaLink a =
                        started(
                                new NatsReplicaLink(config(own.url(), "")),
                                new ConcurrentLinkedQueue<>());
                NatsReplicaLink b = started(new NatsReplicaLink(config(own.url(), "")), atB)) {
            a.send(freed(1));
            await(() -> atB.size() == 1, "the first message");
            own.stop();
            await(() -> !a.isConnected() && !b.isConnected(), "the end of the connections");
            assertFalse(a.send(freed(2)), "none would get it");
            assertTrue(a.wasConnected());
            try (NatsReplicaLink late = new NatsReplicaLink(config(own.url(), ""))) {
                late.start(_ -> {});
                assertFalse(late.isConnected());
                assertFalse(late.wasConnected());
                own.start();
                await(() -> late.isConnected(), "the link that began without a server");
                assertTrue(late.wasConnected());
            }
            await(() -> a.isConnected() && b.isConnected(), "both again");
            await(() -> a.send(freed(3)) && atB.size() >= 2, "what is sent from now on");
            assertTrue(atB.stream().noneMatch(m -> m.sequence() == 2));
        } finally {
            own.stop();
        }
    }

    @Test
    void bytesThatAreNoMessagesAreCountedAndDoNoHarm() throws IOException, InterruptedException {
        final Queue<ReplicaMessage> received = new ConcurrentLinkedQueue<>();
        final Connection other = Patient.connect(NATS.url());
        try (NatsReplicaLink link =
                started(new NatsReplicaLink(config(NATS.url(), "")), received)) {
            final ReplicaSubjects subjects = new ReplicaSubjects("test", component, "");
            other.publish(subjects.bookings(), new byte[0]);
            other.publish(subjects.bookings(), new byte[] {(byte) 0xc1});
            other.publish(subjects.fleet(), "{}".getBytes(StandardCharsets.UTF_8));
            other.publish(subjects.fleet(), ReplicaCodec.fleet(new ReplicaMessage.Leaving(A)));
            await(() -> received.size() == 1, "the message after them");
            assertEquals(3, link.unreadable());
            assertEquals(0, link.dropped());
        } finally {
            other.close();
        }
    }

    @Test
    void aReceiverThatDoesNotKeepUpLosesMessagesAndGoesOn() throws InterruptedException {
        final CountDownLatch go = new CountDownLatch(1);
        final AtomicInteger received = new AtomicInteger();
        try (NatsReplicaLink slow = new NatsReplicaLink(config(NATS.url(), ""));
                NatsReplicaLink fast =
                        started(
                                new NatsReplicaLink(config(NATS.url(), "")),
                                new ConcurrentLinkedQueue<>())) {
            slow.start(
                    _ -> {
                        try {
                            go.await();
                        } catch (InterruptedException e) {
                            Thread.currentThread().interrupt(); // closing
                        }
                        received.getAndIncrement();
                    });
            await(slow::isConnected, "a connection");
            await(
                    () -> {
                        for (int i = 0; i < 2_000; i++) {
                            fast.send(freed(1));
                        }
                        return slow.dropped() > 0;
                    },
                    "a full queue");
            go.countDown();
            await(
                    () -> {
                        final int before = received.get();
                        fast.send(freed(2));
                        return received.get() > before && received.get() > 60_000;
                    },
                    "messages after that");
        }
    }
}
