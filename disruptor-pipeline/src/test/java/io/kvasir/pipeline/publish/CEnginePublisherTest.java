package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.pipeline.events.IndexPipelineConfig;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.pipeline.source.IndexState;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.wire.EngineBatchWriter;
import io.kvasir.testsupport.ConnectingContext;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.Gcc;
import io.kvasir.testsupport.Libzmq;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.zeromq.SocketType;
import org.zeromq.ZFrame;
import org.zeromq.ZMQ;
import org.zeromq.ZMsg;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;

/** The C library for authors of engines, in a C program that is checked for memory errors. */
@Tag("integration") // compiles C, fetches libzmq
class CEnginePublisherTest {
    private static final int PATIENCE_MS = (int) TimeUnit.SECONDS.toMillis(60);
    private static final int SLOT = 1;
    private static final int BLOCK = 4;
    private static final String OK = "0";
    private static final String INVALID = "-1 ";

    @TempDir private static Path built;
    private static Path program;
    private static Libzmq libzmq;

    private final PrefixIndex index = new PrefixIndex(new PrefixIndexConfig(4, 4_096, 4_096));
    private final IndexPipeline pipeline =
            new IndexPipeline(IndexPipelineConfig.defaults().withReplay(2_000, 3, 200), index);
    private final ConnectingContext context = new ConnectingContext();
    private Process process;
    private PrintStream commands;
    private BufferedReader answers;
    private String endpoint;
    private String replayEndpoint;

    @BeforeAll
    static void compile() throws IOException {
        assumeTrue(Gcc.isInstalled(), "skipped: gcc cannot be started here");
        try {
            libzmq = Libzmq.find();
        } catch (IOException e) {
            abort("skipped: libzmq cannot be had: " + e.getMessage());
        }
        final String sources = "native/src/main/c/kv_events/";
        program =
                Gcc.compile(
                        built.resolve("engine"),
                        Gcc.source("native/src/test/c/kv_events_engine.c"),
                        Gcc.source(sources + "batch.c").toString(),
                        Gcc.source(sources + "publisher.c").toString(),
                        Gcc.source(sources + "replay_buffer.c").toString(),
                        Gcc.source(sources + "replays.c").toString(),
                        "-Wconversion",
                        "-Wshadow",
                        "-O1",
                        "-g",
                        "-fsanitize=address,undefined",
                        "-fno-sanitize-recover=all",
                        "-pthread",
                        "-isystem",
                        libzmq.include().toString(),
                        "-L" + libzmq.libraries(),
                        "-Wl,-rpath," + libzmq.libraries(),
                        "-Wl,-rpath-link," + libzmq.libraries(),
                        "-Wl,--no-as-needed",
                        "-lzmq");
    }

    @AfterEach
    void close() throws Exception {
        pipeline.close();
        index.close();
        context.close();
        if (process != null) {
            commands.close(); // the program ends, and says what the sanitizers have found
            assertTrue(process.waitFor(1, TimeUnit.MINUTES), "the program does not end");
            assertEquals(0, process.exitValue());
        }
    }

    private void start() throws IOException {
        final ProcessBuilder builder =
                new ProcessBuilder(program.toString())
                        .redirectError(ProcessBuilder.Redirect.INHERIT);
        builder.environment().put("LD_LIBRARY_PATH", libzmq.libraries().toString());
        // the leak checker wants ptrace, which containers often forbid
        builder.environment().put("ASAN_OPTIONS", "detect_leaks=0");
        process = builder.start();
        commands = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
        answers = process.inputReader(StandardCharsets.UTF_8);
    }

    private String say(String command) {
        commands.println(command);
        try {
            return answers.readLine();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void open(String replay, String topic, int rank, int messages, int unsent, int bytes)
            throws IOException {
        start();
        final String said =
                say(
                        String.join(
                                " ",
                                "open tcp://127.0.0.1:0",
                                replay,
                                topic,
                                rank + " " + BLOCK,
                                messages + " " + unsent + " " + bytes));
        final String[] words = said.split(" ", -1);
        assertEquals(OK, words[0], said);
        endpoint = words[1];
        replayEndpoint = words[2];
    }

    private void open() throws IOException {
        open("tcp://127.0.0.1:0", "kv", 0, 0, 0, 0);
    }

    private EventSource source(int rank) {
        return pipeline.openZmq(
                SourceConfig.of("w", SLOT, BLOCK, endpoint)
                        .withDpRank(rank)
                        .withReplayEndpoint(replayEndpoint));
    }

    private static void await(BooleanSupplier condition, EventSource source) {
        Eventually.holds(() -> source.status().toString(), condition);
    }

    private void awaitBlocks(int blocks, EventSource source) {
        await(() -> index.heldBlocks(SLOT) == blocks && source.state() == IndexState.EXACT, source);
    }

    @Test
    void theRouterReadsWhatAnEngineInCHasPublishedAndAsksForWhatItHasMissed() throws Exception {
        open();
        assertEquals("0 0", say("stored 1 8 - - 0 - 101 102"));
        assertEquals("0 1", say("stored 9 4 - 102 0 - 103"));
        final EventSource source = source(0);
        awaitBlocks(3, source); // by replay
        assertEquals("0 2", say("removed 103"));
        awaitBlocks(2, source);
        assertEquals("0 3", say("stored 50 10 4,4,2 - 0 - 201 202 203"));
        awaitBlocks(4, source); // the third block is not whole
        assertEquals("0 4", say("stored 70 4 - - 9 an-adapter 301"));
        awaitBlocks(5, source);
        assertEquals("0 5", say("cleared"));
        awaitBlocks(0, source);
        assertEquals(0, source.status().lostMessages());
        assertEquals("", source.status().problem());
    }

    @Test
    void eventsOfARankAreThoseOfThisRank() throws Exception {
        open("tcp://127.0.0.1:0", "-", 3, 0, 0, 0);
        say("stored 1 4 - - 0 - 101");
        awaitBlocks(1, source(3));
    }

    @Test
    void theBytesAreThoseOfTheJavaPublisher() throws Exception {
        open("tcp://127.0.0.1:0", "kv@w1", 7, 0, 0, 0);
        final int[] many = IntStream.range(65_530, 65_530 + 400).toArray();
        final long[] hashes = new long[100];
        final StringBuilder list = new StringBuilder();
        for (int i = 0; i < hashes.length; i++) {
            hashes[i] = i * 0x0123_4567_89ab_cdefL - (i % 3);
            list.append(' ').append(Long.toUnsignedString(hashes[i]));
        }
        final String longName = "adapter-".repeat(5);
        assertEquals("0 0", say("stored 65530 400 - - 0 -" + list));
        assertEquals("0 1", say("stored 1 4 - 18446744073709551615 0 " + longName + " 5"));
        assertEquals("0 2", say("removed" + list));
        assertEquals("0 3", say("cleared"));
        final List<byte[]> wanted =
                List.of(
                        EngineBatchWriter.stored(1.5, 7, many, hashes, null, null),
                        EngineBatchWriter.stored(
                                1.5, 7, new int[] {1, 2, 3, 4}, new long[] {5}, -1L, longName),
                        EngineBatchWriter.removed(1.5, 7, hashes),
                        EngineBatchWriter.cleared(1.5, 7));
        final List<List<byte[]>> replayed = replay(0);
        for (int i = 0; i < wanted.size(); i++) {
            assertEquals(4, replayed.get(i).size());
            assertEquals(0, replayed.get(i).get(0).length);
            assertEquals("kv@w1", new String(replayed.get(i).get(1), StandardCharsets.UTF_8));
            assertEquals(i, number(replayed.get(i).get(2)));
            assertArrayEquals(wanted.get(i), replayed.get(i).get(3), "message " + i);
        }
        // live messages have the same three frames
        final ZMQ.Socket subscriber = subscriber("kv@");
        List<byte[]> live = null;
        while (live == null) {
            say("cleared");
            live = receive(subscriber);
        }
        assertEquals(3, live.size());
        assertEquals("kv@w1", new String(live.get(0), StandardCharsets.UTF_8));
        assertArrayEquals(wanted.get(3), live.get(2));
    }

    private ZMQ.Socket subscriber(String topic) {
        final ZMQ.Socket socket = context.socket(SocketType.SUB);
        socket.setReceiveTimeOut(20);
        socket.subscribe(topic.getBytes(StandardCharsets.UTF_8));
        socket.connect(endpoint);
        return socket;
    }

    /** The frames of a message; null if none comes. */
    private static List<byte[]> receive(ZMQ.Socket socket) {
        final ZMsg message = ZMsg.recvMsg(socket);
        return message == null ? null : message.stream().map(ZFrame::getData).toList();
    }

    private static long number(byte[] frame) {
        return ByteBuffer.wrap(frame).getLong();
    }

    /** All answers but the end. */
    private List<List<byte[]>> replay(long from) {
        final ZMQ.Socket dealer = context.socket(SocketType.DEALER);
        dealer.setReceiveTimeOut(PATIENCE_MS);
        dealer.connect(replayEndpoint);
        dealer.sendMore(new byte[0]);
        dealer.send(ByteBuffer.allocate(Long.BYTES).putLong(from).array());
        final List<List<byte[]>> all = new ArrayList<>();
        List<byte[]> next = receive(dealer);
        while (number(next.get(2)) != -1) {
            all.add(next);
            next = receive(dealer);
        }
        assertEquals(
                List.of(0, 0, Long.BYTES, 0), next.stream().map(frame -> frame.length).toList());
        dealer.close();
        return all;
    }

    @Test
    void messagesOfSeveralThreadsAreNumberedWithoutAGapAndTheBufferIsBounded() throws Exception {
        open("tcp://127.0.0.1:0", "kv", 0, 1_000, 0, 0);
        assertEquals(OK, say("many 10000"));
        final List<List<byte[]>> kept = replay(0);
        assertEquals(1_000, kept.size());
        for (int i = 0; i < kept.size(); i++) {
            assertEquals(9_000 + i, number(kept.get(i).get(2)));
        }
        assertEquals("0 10000", say("cleared"));
        assertEquals(1, replay(10_000).size());
        assertEquals(0, replay(10_001).size());
        assertEquals(0, replay(Long.MAX_VALUE).size());
        assertEquals(1_000, replay(-5).size());
    }

    @Test
    void theBufferIsBoundedInBytesToo() throws Exception {
        open("tcp://127.0.0.1:0", "kv", 0, 1_000, 0, 2_000);
        say("many 1000");
        final int bytes = replay(0).stream().mapToInt(message -> message.get(3).length).sum();
        assertTrue(bytes > 1_500 && bytes <= 2_000, bytes + " bytes");
        final StringBuilder large = new StringBuilder("removed");
        IntStream.range(0, 1_000).forEach(i -> large.append(" 18446744073709551615"));
        say(large.toString());
        assertEquals(1, replay(0).size(), "the newest is kept however long");
    }

    @Test
    void aReaderThatDoesNotReadHoldsUpNobody() throws Exception {
        open("tcp://127.0.0.1:0", "kv", 0, 0, 10, 0);
        final ZMQ.Socket slow = context.socket(SocketType.SUB);
        slow.setRcvHWM(1);
        slow.subscribe(new byte[0]);
        slow.connect(endpoint);
        final ZMQ.Socket dealer = context.socket(SocketType.DEALER);
        dealer.setRcvHWM(1);
        dealer.connect(replayEndpoint);
        dealer.sendMore(new byte[0]);
        say("many 10000");
        dealer.send(new byte[Long.BYTES]); // and does not read the answer
        final EventSource source = source(0);
        for (int i = 0; i < 20; i++) {
            say("stored " + i * 10 + " 4 - - 0 - " + (1_000 + i));
        }
        // past ten unsent messages the newest are dropped; the next one shows what is missing
        await(
                () -> {
                    say("stored 190 4 - - 0 - 1019");
                    return index.heldBlocks(SLOT) == 20;
                },
                source);
    }

    @Test
    void hostileRequestsAreDroppedAndTheNextOneIsAnswered() throws Exception {
        open();
        say("cleared");
        final ZMQ.Socket dealer = context.socket(SocketType.DEALER);
        dealer.connect(replayEndpoint);
        for (byte[][] frames :
                List.of(
                        new byte[][] {{}},
                        new byte[][] {{1}},
                        new byte[][] {{}, {1, 2, 3}},
                        new byte[][] {{}, new byte[60_000]},
                        new byte[][] {{}, new byte[8], {}},
                        new byte[][] {{}, {}, {}, {}, {}, {}, {}})) {
            for (int i = 0; i < frames.length; i++) {
                dealer.send(frames[i], i == frames.length - 1 ? 0 : ZMQ.SNDMORE);
            }
        }
        for (int i = 0; i < 20; i++) {
            assertEquals(1, replay(0).size());
        }
    }

    @Test
    void whatCannotBeIsRefusedWithoutANumber() throws Exception {
        open();
        for (String command :
                List.of(
                        "stored 1 7 - - 0 - 101 102", // less than the blocks have
                        "stored 1 9 - - 0 - 101 102", // more
                        "stored 1 7 4,4 - 0 - 101 102",
                        "stored 1 8 - - 0 -", // no blocks
                        "stored 1 4 - - 5 - 101", // an adapter without a name
                        "removed")) {
            assertTrue(say(command).startsWith(INVALID), command);
        }
        assertEquals(OK, say("stored 1 3 3 - 0 - 101"), "no whole block is no event");
        assertEquals("0 0", say("cleared"));
    }

    @Test
    void addressesThatCannotBeBoundAreNamedAsSuchAndBlocksOfNothingAreRefused() throws Exception {
        open();
        final String taken = endpoint;
        final String[] tails = {" - kv 0 4 0 0 0", " - kv 0 0 0 0 0"};
        say("close");
        try (ZMQ.Socket other = context.socket(SocketType.PUB)) {
            assertTrue(other.bind(taken));
            assertTrue(say("open " + taken + tails[0]).startsWith("-3 "));
        }
        assertTrue(say("open nonsense" + tails[0]).startsWith("-3 "));
        assertTrue(say("open tcp://127.0.0.1:0 nonsense kv 0 4 0 0 0").startsWith("-3 "));
        assertTrue(say("open tcp://127.0.0.1:0" + tails[1]).startsWith(INVALID));
        assertTrue(say("open -" + tails[0]).startsWith(INVALID));
        assertTrue(say("cleared").startsWith(INVALID), "there is no publisher");
    }

    @Test
    void closingTwiceIsClosingOnceAndAnotherOneMayBeOpened() throws Exception {
        open();
        say("cleared");
        assertEquals(OK, say("close"));
        assertEquals(OK, say("close"));
        final String said = say("open " + endpoint + " - kv 0 4 0 0 0");
        assertTrue(said.startsWith("0 ") && said.endsWith(" -"), said);
        assertEquals("0 0", say("cleared"));
    }
}
