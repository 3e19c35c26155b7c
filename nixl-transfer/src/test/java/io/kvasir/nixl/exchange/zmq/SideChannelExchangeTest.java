package io.kvasir.nixl.exchange.zmq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.ExchangeContract;
import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.RecordOwner;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.nixl.exchange.Records.Received;
import io.kvasir.testsupport.ConnectingContext;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.zeromq.SocketType;
import org.zeromq.ZMQ;

import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;

class SideChannelExchangeTest extends ExchangeContract {
    private static final String HOST = "127.0.0.1";

    /** A slow machine must not look like a silent peer. */
    private static final SideChannelConfig CONFIG =
            new SideChannelConfig(Duration.ofMillis(20), Duration.ofSeconds(10), 8);

    private final AtomicLong skippedNs = new AtomicLong();

    private final List<SideChannelExchange> all = new ArrayList<>();

    /** The other process. */
    static final class Owner {
        private Owner() {}

        public static void main(String[] args) throws IOException {
            final SideChannelExchange exchange = new SideChannelExchange(HOST, 0, CONFIG);
            final String port = Integer.toString(exchange.port());
            RecordOwner.serve(exchange, port, Records.record(args[0], Long.parseLong(args[1]), 1));
        }
    }

    @Override
    protected MetadataExchange open() {
        return open(HostLookups::ipv4);
    }

    private SideChannelExchange open(HostLookups.Resolver resolver) {
        final SideChannelExchange exchange =
                closing(
                        new SideChannelExchange(
                                HOST,
                                0,
                                CONFIG,
                                () -> System.nanoTime() + skippedNs.get(),
                                resolver));
        for (SideChannelExchange other : all) {
            exchange.know(HOST, other.port());
            other.know(HOST, exchange.port());
        }
        all.add(exchange);
        return exchange;
    }

    @Override
    protected void passSilence() {
        skippedNs.addAndGet(CONFIG.silence().toNanos());
    }

    @Override
    protected Process startOwner(String name, long incarnation) throws IOException {
        return RecordOwner.start(Owner.class, List.of(name, Long.toString(incarnation)));
    }

    @Override
    protected void meet(MetadataExchange exchange, String line) {
        ((SideChannelExchange) exchange).know(HOST, Integer.parseInt(line));
    }

    @Test
    void aForgottenPeerIsGone() throws InterruptedException {
        final MetadataExchange a = open();
        final SideChannelExchange b = (SideChannelExchange) open();
        final Received received = new Received();
        b.watch("a", received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        b.forget(HOST, all.getFirst().port());
        assertEquals("GONE a 1.1", received.next());
    }

    @Test
    void aSuccessorOnTheSamePortIsFound() throws InterruptedException {
        final SideChannelExchange a = (SideChannelExchange) open();
        final MetadataExchange b = open();
        final Received received = new Received();
        b.watch("a", received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        a.close();
        final SideChannelExchange next = closing(new SideChannelExchange(HOST, a.port(), CONFIG));
        next.publish(Records.record("a", 2, 1));
        passSilence(); // a question to the one that ended is not answered any more
        final String first = received.next();
        if (!first.equals("CHANGED a 2.1")) { // a starved one asks when the successor is there
            assertEquals("GONE a 1.1", first);
            assertEquals("UP a 2.1", received.next());
        }
        assertEquals(Records.record("a", 2, 1), b.find("a", PATIENCE));
    }

    @Test
    void rubbishIsCountedAndHurtsNobody() throws InterruptedException {
        final SideChannelExchange a = (SideChannelExchange) open();
        final MetadataExchange b = open();
        try (ConnectingContext context = new ConnectingContext()) {
            final ZMQ.Socket socket = context.socket(SocketType.DEALER);
            socket.connect("tcp://" + HOST + ":" + a.port());
            socket.send("rubbish");
            socket.sendMore("more");
            socket.send("rubbish");
            final long deadlineNs = System.nanoTime() + PATIENCE.toNanos();
            while (a.malformed() < 2) {
                assertTrue(System.nanoTime() - deadlineNs < 0, a.malformed() + " counted");
                Thread.sleep(1);
            }
        }
        a.publish(Records.record("a", 1, 1));
        assertEquals("a", b.find("a", PATIENCE).name());
    }

    @Test
    void aPeerWhoseHostIsUnknownIsSilentAndHurtsNobody() {
        final SideChannelExchange a = (SideChannelExchange) open();
        final MetadataExchange b = open();
        a.know("no-such-host.invalid", 1);
        // its answer comes in a round after the one in which the unknown host was tried
        final SideChannelExchange late = closing(new SideChannelExchange(HOST, 0, CONFIG));
        a.know(HOST, late.port());
        late.publish(Records.record("late", 1, 1));
        assertEquals("late", a.find("late", PATIENCE).name());
        passSilence(); // it is tried again
        a.publish(Records.record("a", 1, 1));
        assertEquals("a", b.find("a", PATIENCE).name());
        a.forget("no-such-host.invalid", 1);
        late.publish(Records.record("later", 1, 1));
        assertEquals("later", a.find("later", PATIENCE).name());
    }

    @Test
    void asManyPeersAreAskedAsMayBeKnown() {
        final int peers = 1_100; // more sockets than a context of ZMQ has by itself
        final SideChannelExchange a =
                closing(
                        new SideChannelExchange(
                                HOST,
                                0,
                                new SideChannelConfig(
                                        Duration.ofMillis(20), Duration.ofSeconds(10), peers),
                                System::nanoTime,
                                name -> {
                                    throw new UnknownHostException(name);
                                }));
        for (int i = 1; i < peers; i++) {
            a.know("peer-" + i, 1);
        }
        final SideChannelExchange last = closing(new SideChannelExchange(HOST, 0, CONFIG));
        last.publish(Records.record("last", 1, 1));
        a.know(HOST, last.port());
        assertEquals("last", a.find("last", PATIENCE).name());
    }

    @Test
    void aPeerWhoseHostIsLookedUpForLongHoldsUpNoOther() throws InterruptedException {
        final CountDownLatch asked = new CountDownLatch(1);
        final CompletableFuture<InetAddress> answer = new CompletableFuture<>();
        final SideChannelExchange a =
                open(
                        name -> {
                            asked.countDown();
                            return answer.join();
                        });
        final MetadataExchange b = open();
        final Received received = new Received();
        b.watch("a", received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        final SideChannelExchange slow = closing(new SideChannelExchange(HOST, 0, CONFIG));
        slow.publish(Records.record("slow", 1, 1));
        a.know("slow.svc", slow.port());
        asked.await();
        a.publish(Records.record("a", 1, 2));
        assertEquals("CHANGED a 1.2", received.next());
        b.publish(Records.record("b", 1, 1));
        assertEquals("b", a.find("b", PATIENCE).name());
        answer.complete(InetAddress.ofLiteral(HOST));
        assertEquals("slow", a.find("slow", PATIENCE).name());
    }

    @Test
    void aTakenPortAndTooManyPeersAreNamed() {
        final SideChannelExchange a = (SideChannelExchange) open();
        final ExchangeException taken =
                assertThrows(
                        ExchangeException.class,
                        () -> new SideChannelExchange(HOST, a.port(), CONFIG));
        assertEquals(Kind.UNAVAILABLE, taken.kind());
        for (int port = 1; port <= CONFIG.maxPeers(); port++) {
            a.know(HOST, port);
        }
        a.know(HOST, 1); // known already
        assertThrows(ExchangeException.class, () -> a.know(HOST, 9));
        assertThrows(IllegalArgumentException.class, () -> a.know(HOST, 0));
    }

    @Test
    void anInterruptedThreadClosesAllOfItAndStaysInterrupted() throws InterruptedException {
        final SideChannelExchange a = (SideChannelExchange) open();
        final MetadataExchange b = open();
        final Received received = new Received();
        b.watch("a", received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        Thread.currentThread().interrupt();
        a.close();
        assertTrue(Thread.interrupted());
        assertFalse(runs(a));
        closing(new SideChannelExchange(HOST, a.port(), CONFIG)); // the port is free
        assertEquals("GONE a 1.1", received.next());
    }

    private static boolean runs(SideChannelExchange exchange) {
        final String name = "kvasir-exchange-" + exchange.port();
        return Thread.getAllStackTraces().keySet().stream()
                .anyMatch(thread -> thread.getName().equals(name));
    }

    @Test
    void aListenerMayCloseTheExchangeThatNotifiesIt() {
        final MetadataExchange a = open();
        final SideChannelExchange b = (SideChannelExchange) open();
        b.publish(Records.record("b", 1, 1));
        a.find("b", PATIENCE);
        b.watch("a", (change, record) -> b.close());
        a.publish(Records.record("a", 1, 1));
        Eventually.holds("the end of the exchange's thread", () -> !runs(b));
        assertThrows(ExchangeException.class, () -> b.publish(Records.record("b", 1, 2)));
        b.close();
    }

    @Test
    void aListenerMayCloseItInTheThreadThatPublishes() {
        final SideChannelExchange a = (SideChannelExchange) open();
        a.watch("a", (change, record) -> a.close());
        a.publish(Records.record("a", 1, 1));
        Eventually.holds("the end of the exchange's thread", () -> !runs(a));
    }

    @ParameterizedTest
    @MethodSource("longTimes")
    void theLongestTimesAreTaken(Duration longest) throws InterruptedException {
        final SideChannelConfig patient = new SideChannelConfig(Duration.ofMillis(20), longest, 8);
        final SideChannelExchange a = closing(new SideChannelExchange(HOST, 0, patient));
        final MetadataExchange b = closing(new SideChannelExchange(HOST, 0, patient));
        ((SideChannelExchange) b).know(HOST, a.port());
        final Received received = new Received();
        b.watch("a", received);
        a.publish(Records.record("a", 1, 1));
        assertEquals("UP a 1.1", received.next());
        a.publish(Records.record("a", 1, 2));
        assertEquals("CHANGED a 1.2", received.next());
        final SideChannelExchange c =
                closing(
                        new SideChannelExchange(
                                HOST,
                                0,
                                new SideChannelConfig(
                                        longest.dividedBy(2).minusSeconds(1), longest, 8)));
        c.know(HOST, a.port()); // which is asked once, at once
        assertEquals("a", c.find("a", PATIENCE).name());
    }

    private static List<Duration> longTimes() {
        return List.of(Duration.ofSeconds(Long.MAX_VALUE), Duration.ofDays(200 * 365));
    }

    @Test
    void timesThatCannotBeAreNamed() {
        final Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
        refused("heartbeat=PT0.0009S, at least 1 ms", Duration.ofNanos(900_000), longest);
        refused("heartbeat=PT-1S, at least 1 ms", Duration.ofSeconds(-1), longest);
        refused(
                "silence=PT0.2S must be longer than two heartbeats of PT0.1S",
                Duration.ofMillis(100),
                Duration.ofMillis(200));
        refused(
                "silence=" + longest + " must be longer than two heartbeats of " + longest,
                longest,
                longest);
    }

    private static void refused(String why, Duration heartbeat, Duration silence) {
        assertEquals(
                why,
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new SideChannelConfig(heartbeat, silence, 8))
                        .getMessage());
    }

    @Test
    void whatIsMissingIsNamedWhereItIsGiven() {
        final SideChannelExchange a = (SideChannelExchange) open();
        final MetadataExchange b = open();
        missing("host", () -> a.know(null, 1));
        missing("host", () -> a.know(null, 0));
        missing("host", () -> a.forget(null, 1));
        missing("record", () -> a.publish(null));
        missing("name", () -> a.find(null, Duration.ZERO));
        missing("patience", () -> a.find("a", null));
        missing("listener", () -> a.watch("a", null));
        missing("host", () -> new SideChannelExchange(null, 0, CONFIG));
        missing("config", () -> new SideChannelExchange(HOST, 0, null));
        a.publish(Records.record("a", 1, 1));
        assertEquals("a", b.find("a", PATIENCE).name());
    }

    private static void missing(String name, Executable call) {
        assertEquals(name, assertThrows(NullPointerException.class, call).getMessage());
    }
}
