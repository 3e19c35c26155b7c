package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.pipeline.wire.EngineBatchWriter;
import io.kvasir.testsupport.ConnectingContext;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.FreePorts;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.zeromq.SocketType;
import org.zeromq.ZFrame;
import org.zeromq.ZMQ;
import org.zeromq.ZMsg;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** Against JeroMQ, whose subscribers and requesters are another implementation of ZMTP. */
class EngineEventPublisherTest {
    private static final int PATIENCE_MS = (int) TimeUnit.SECONDS.toMillis(60);
    private static final int[] TOKENS = {1, 2, 3, 4, 5, 6, 7, 8};

    private final ConnectingContext context = new ConnectingContext();
    private final EngineEventPublisher publisher;

    EngineEventPublisherTest() throws IOException {
        publisher =
                new EngineEventPublisher(
                        "tcp://127.0.0.1:0",
                        "tcp://127.0.0.1:0",
                        "kv@w1",
                        0,
                        4,
                        InstantSource.fixed(Instant.ofEpochMilli(1_500)));
    }

    @AfterEach
    void close() {
        publisher.close();
        context.close();
    }

    private static byte[] hex(String text) {
        return HexFormat.of().parseHex(text);
    }

    @Test
    void batchesAreThoseOfVllmByteForByte() {
        assertArrayEquals(
                hex(
                        "93cb3ff80000000000009188a474797065ab426c6f636b53746f726564ac626c6f636b5f68"
                                + "6173686573926566b1706172656e745f626c6f636b5f68617368c0a9746f6b65"
                                + "6e5f696473980102030405060708aa626c6f636b5f73697a6504a76c6f72615f"
                                + "6964c0a66d656469756da3475055a96c6f72615f6e616d65c000"),
                EngineBatchWriter.stored(1.5, 0, TOKENS, new long[] {101, 102}, null, null));
        assertArrayEquals(
                hex(
                        "93cb3ff80000000000009183a474797065ac426c6f636b52656d6f766564ac626c6f636b5f"
                                + "6861736865739166a66d656469756da347505500"),
                EngineBatchWriter.removed(1.5, 0, new long[] {102}));
        assertArrayEquals(
                hex("93cb3ff80000000000009181a474797065b0416c6c426c6f636b73436c656172656400"),
                EngineBatchWriter.cleared(1.5, 0));
    }

    private ZMQ.Socket subscriber(String topic) {
        final ZMQ.Socket socket = context.socket(SocketType.SUB);
        socket.setReceiveTimeOut(PATIENCE_MS);
        socket.subscribe(topic.getBytes(StandardCharsets.UTF_8));
        socket.connect(publisher.endpoint());
        return socket;
    }

    /** Publishes until a subscriber has one: then it is subscribed. */
    private List<byte[]> first(ZMQ.Socket socket) {
        List<byte[]> message = null;
        socket.setReceiveTimeOut(20);
        while (message == null) {
            publisher.publishAllCleared();
            message = receive(socket);
        }
        socket.setReceiveTimeOut(PATIENCE_MS);
        return message;
    }

    /** The frames of a message; null if none comes. */
    private static List<byte[]> receive(ZMQ.Socket socket) {
        final ZMsg message = ZMsg.recvMsg(socket);
        return message == null ? null : message.stream().map(ZFrame::getData).toList();
    }

    private static long number(byte[] frame) {
        return ByteBuffer.wrap(frame).getLong();
    }

    @Test
    void aSubscriberGetsTopicNumberAndBatch() {
        final ZMQ.Socket socket = subscriber("kv@");
        List<byte[]> message = first(socket);
        final long sent = publisher.publishStored(TOKENS, new long[] {101, 102}, null, null);
        while (number(message.get(1)) != sent) {
            message = receive(socket);
        }
        assertEquals(3, message.size());
        assertEquals("kv@w1", new String(message.get(0), StandardCharsets.UTF_8));
        assertArrayEquals(
                EngineBatchWriter.stored(1.5, 0, TOKENS, new long[] {101, 102}, null, null),
                message.get(2));
    }

    @Test
    void aSubscriberOfAnotherTopicGetsNothing() {
        final ZMQ.Socket other = subscriber("load");
        first(subscriber("kv@w1"));
        other.setReceiveTimeOut(0);
        assertEquals(null, receive(other));
    }

    @Test
    void oldMessagesAreSentAgainFromANumberOn() {
        final int messages = 3_000; // many times what is sent ahead of the reader
        for (int i = 0; i < messages; i++) {
            publisher.publishRemoved(i);
        }
        final ZMQ.Socket socket = context.socket(SocketType.REQ);
        socket.setReceiveTimeOut(PATIENCE_MS);
        socket.connect(publisher.replayEndpoint());
        socket.send(ZmqPublisher.number(10));
        // a requester reads one answer; a dealer all of them
        assertEquals(10, number(receive(socket).get(1)));

        final ZMQ.Socket dealer = dealer(1_000);
        ask(dealer, 10);
        expectAnswer(dealer, 10, messages);
    }

    private ZMQ.Socket dealer(int mostWaiting) {
        final ZMQ.Socket socket = context.socket(SocketType.DEALER);
        socket.setReceiveTimeOut(PATIENCE_MS);
        socket.setRcvHWM(mostWaiting);
        socket.connect(publisher.replayEndpoint());
        return socket;
    }

    private static void ask(ZMQ.Socket dealer, long from) {
        dealer.sendMore(new byte[0]);
        dealer.send(ZmqPublisher.number(from));
    }

    private static void expectAnswer(ZMQ.Socket dealer, long from, long to) {
        for (long i = from; i < to; i++) {
            final List<byte[]> message = receive(dealer);
            assertEquals(4, message.size());
            assertEquals(i, number(message.get(2)));
        }
        final List<byte[]> end = receive(dealer);
        assertEquals(-1, number(end.get(2)));
        assertEquals(0, end.get(3).length);
    }

    @Test
    void requestsOfOnePeerAreAnsweredOneAfterTheOther() {
        final int messages = 3_000; // of 9 KB: many times what its socket takes
        final long[] hashes = new long[1_000];
        Arrays.fill(hashes, Long.MAX_VALUE);
        for (int i = 0; i < messages; i++) {
            publisher.publishRemoved(hashes);
        }
        final int further = 200;
        final ZMQ.Socket dealer = dealer(1);
        ask(dealer, 0);
        for (int i = 0; i < further; i++) {
            ask(dealer, messages - 2);
        }
        expectAnswer(dealer, 0, messages);
        for (int i = 0; i < further; i++) {
            expectAnswer(dealer, messages - 2, messages);
        }
    }

    @Test
    void tokensThatAreNotTheseBlocksAreRefused() {
        assertThrows(
                IllegalArgumentException.class,
                () -> publisher.publishStored(TOKENS, new long[] {1}, null, null));
    }

    @Test
    void whatIsPublishedAfterTheCloseIsRefused() {
        assertEquals(0, publisher.publishRemoved(1));
        publisher.close();
        for (Executable call :
                List.<Executable>of(
                        () -> publisher.publishStored(TOKENS, new long[] {1, 2}, null, null),
                        () -> publisher.publishRemoved(1),
                        publisher::publishAllCleared)) {
            assertEquals(
                    "the publisher is closed",
                    assertThrows(IllegalStateException.class, call).getMessage());
        }
        publisher.close(); // the second one does nothing
    }

    @Test
    void callsThatRaceWithTheCloseHaveANumberOrAreRefused() throws InterruptedException {
        final AtomicLong numbers = new AtomicLong();
        final AtomicLong last = new AtomicLong(-1);
        final Queue<String> refusals = new ConcurrentLinkedQueue<>();
        final List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            threads.add(
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try {
                                            while (numbers.get() < 1_000_000) {
                                                final long number = publisher.publishRemoved(1);
                                                numbers.getAndIncrement();
                                                last.accumulateAndGet(number, Math::max);
                                            }
                                        } catch (IllegalStateException e) {
                                            refusals.add(e.getMessage());
                                        }
                                    }));
        }
        Eventually.holds("some are published", () -> numbers.get() > 100);
        publisher.close();
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals(Collections.nCopies(4, "the publisher is closed"), List.copyOf(refusals));
        assertEquals(numbers.get(), last.get() + 1);
    }

    @Test
    void anAddressThatIsTakenIsNamed() {
        final IOException refusal =
                assertThrows(
                        IOException.class,
                        () -> new EngineEventPublisher(publisher.endpoint(), null, "", 0, 4));
        assertEquals(
                "cannot bind " + publisher.endpoint() + ": Address already in use",
                refusal.getMessage());
    }

    @Test
    void whatWasBoundBeforeAnAddressThatIsNoneIsFreeAgain() throws IOException {
        final String address = "tcp://127.0.0.1:" + FreePorts.run(1);
        assertThrows(
                IllegalArgumentException.class,
                () -> new EngineEventPublisher(address, "5558", "", 0, 4));
        new EngineEventPublisher(address, null, "", 0, 4).close();
    }
}
