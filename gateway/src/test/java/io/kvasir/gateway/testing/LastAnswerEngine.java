package io.kvasir.gateway.testing;

import io.kvasir.gateway.config.WorkerConfig;

import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A server of HTTP/2 by prior knowledge, written to the socket byte by byte, whose connections end
 * with the answer to their first request that has a body: an engine that is about to end.
 */
public final class LastAnswerEngine implements AutoCloseable {
    private static final int PREFACE_BYTES = 24;
    private static final int FRAME_BYTES = 16_000;
    private static final byte DATA = 0;
    private static final byte HEADERS = 1;
    private static final byte SETTINGS = 4;
    private static final byte PING = 6;
    private static final byte GOAWAY = 7;
    private static final byte END_STREAM = 1;
    private static final byte ACK = 1;
    private static final byte END_HEADERS = 4;

    /** SETTINGS_MAX_CONCURRENT_STREAMS: none of another request is lost with the connection. */
    private static final byte[] ONE_STREAM = {0, 3, 0, 0, 0, 1};

    /** How a connection ends. */
    public enum End {
        /** It is closed, without a word. */
        CLOSED,
        /** GOAWAY that names the last stream, then the answer. */
        ANNOUNCED,
        /** The answer, then GOAWAY that names its stream. */
        SAID_AFTERWARDS,
        /** GOAWAY that names the last stream, the answer a while later. */
        ANNOUNCED_EARLY
    }

    private final ServerSocket listening;
    private final AcceptedSockets sockets = new AcceptedSockets(this::serve);
    private final End end;
    private final byte[] head;
    private final byte[] body;

    /** Requests with bodies that were answered. */
    public final AtomicInteger answered = new AtomicInteger();

    /** Answers with the given body, which fits into the windows of a new connection. */
    public LastAnswerEngine(End end, String type, String body) {
        this.end = end;
        this.body = body.getBytes(StandardCharsets.UTF_8);
        head = head(type);
        try {
            listening = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        sockets.acceptFrom(listening);
    }

    public WorkerConfig worker(String name) {
        return WorkerConfig.parse("http://127.0.0.1:" + listening.getLocalPort() + ",name=" + name);
    }

    /** Status 200 by its index in the static table of HPACK, the type by that of its name. */
    private static byte[] head(String type) {
        final byte[] value = type.getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate(4 + value.length)
                .put((byte) 0x88)
                .put((byte) 0x0f)
                .put((byte) 0x10)
                .put((byte) value.length)
                .put(value)
                .array();
    }

    private void serve(Socket socket) throws IOException, InterruptedException {
        final DataInputStream in = new DataInputStream(socket.getInputStream());
        final OutputStream out = socket.getOutputStream();
        in.readFully(new byte[PREFACE_BYTES]);
        out.write(frame(SETTINGS, 0, 0, ONE_STREAM));
        while (true) {
            final int lengthAndType = in.readInt();
            final int flags = in.readUnsignedByte();
            final int stream = in.readInt();
            final byte[] payload = in.readNBytes(lengthAndType >>> Byte.SIZE);
            final byte type = (byte) lengthAndType;
            if (type == SETTINGS && (flags & ACK) == 0) {
                out.write(frame(SETTINGS, ACK, 0, new byte[0]));
            } else if (type == PING && (flags & ACK) == 0) {
                out.write(frame(PING, ACK, 0, payload));
            } else if (type == HEADERS && (flags & END_STREAM) != 0) {
                out.write(answer(stream, "{}".getBytes(StandardCharsets.US_ASCII)));
            } else if (type == DATA && (flags & END_STREAM) != 0) {
                answered.incrementAndGet();
                answerAndEnd(out, stream);
                socket.shutdownOutput();
                in.skipNBytes(Long.MAX_VALUE); // unread, they would take the answer back
            }
        }
    }

    private void answerAndEnd(OutputStream out, int stream)
            throws IOException, InterruptedException {
        final byte[] answer = answer(stream, body);
        final byte[] goAway =
                frame(GOAWAY, 0, 0, ByteBuffer.allocate(8).putInt(stream).putInt(0).array());
        switch (end) {
            case CLOSED -> inParts(out, answer);
            case ANNOUNCED -> inParts(out, together(goAway, answer));
            case SAID_AFTERWARDS -> inParts(out, together(answer, goAway));
            case ANNOUNCED_EARLY -> {
                out.write(goAway);
                Thread.sleep(20);
                inParts(out, answer);
            }
        }
    }

    /** Frames may come in any parts; the last one comes with the end. */
    private static void inParts(OutputStream out, byte[] bytes)
            throws IOException, InterruptedException {
        final int at = ThreadLocalRandom.current().nextInt(bytes.length);
        out.write(bytes, 0, at);
        if (at % 2 == 0) {
            Thread.sleep(1);
        }
        out.write(bytes, at, bytes.length - at);
    }

    private byte[] answer(int stream, byte[] content) {
        final ByteArrayOutputStream frames = new ByteArrayOutputStream();
        frames.writeBytes(frame(HEADERS, END_HEADERS, stream, head));
        for (int from = 0; from < content.length; from += FRAME_BYTES) {
            final int to = Math.min(content.length, from + FRAME_BYTES);
            frames.writeBytes(
                    frame(
                            DATA,
                            to == content.length ? END_STREAM : 0,
                            stream,
                            ByteBuffer.wrap(content, from, to - from)));
        }
        return frames.toByteArray();
    }

    private static byte[] frame(byte type, int flags, int stream, byte[] payload) {
        return frame(type, flags, stream, ByteBuffer.wrap(payload));
    }

    private static byte[] frame(byte type, int flags, int stream, ByteBuffer payload) {
        return ByteBuffer.allocate(9 + payload.remaining())
                .putInt(payload.remaining() << Byte.SIZE | type)
                .put((byte) flags)
                .putInt(stream)
                .put(payload)
                .array();
    }

    private static byte[] together(byte[] first, byte[] second) {
        return ByteBuffer.allocate(first.length + second.length).put(first).put(second).array();
    }

    @Override
    public void close() {
        try {
            listening.close();
            sockets.close();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
