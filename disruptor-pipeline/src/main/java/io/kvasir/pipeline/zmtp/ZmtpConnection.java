package io.kvasir.pipeline.zmtp;

import jdk.net.ExtendedSocketOptions;

import java.io.IOException;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;

/**
 * One connection that speaks ZMTP 3.0 with the NULL mechanism, made by us or to us. It lives once:
 * connecting, greeting, handshake, open, closed. All methods on the poller's thread.
 *
 * <p>As a subscriber or requester, its READY command follows the peer's, so that a peer of another
 * socket type is known by its type before it drops the connection; as a publisher or answerer it
 * comes first.
 */
public final class ZmtpConnection implements SocketPoller.Handler, FrameReader.Receiver {
    /** Is called on the poller's thread. */
    public interface Listener {
        /** The handshake has succeeded. */
        void opened(ZmtpConnection connection);

        /** Takes a message; false = not now: the same comes again after {@link #resume}. */
        boolean received(ZmtpConnection connection, ZmtpMessage message);

        /**
         * The connection has ended or was never made, and not by {@link ZmtpConnection#close}.
         *
         * @param why in words that follow the peer's address
         */
        void closed(ZmtpConnection connection, String why);
    }

    private enum State {
        CONNECTING,
        GREETING,
        HANDSHAKE,
        OPEN,
        CLOSED
    }

    private static final int KEEPALIVE_IDLE_S = 10;
    private static final int KEEPALIVE_INTERVAL_S = 3;
    private static final int KEEPALIVE_PROBES = 3;

    private final SocketPoller poller;
    private final ZmtpOptions options;
    private final Listener listener;
    private final FrameReader reader;
    private final Deque<ByteBuffer> unsent = new ArrayDeque<>(0);
    private SocketChannel channel;
    private SelectionKey key;
    private State state = State.CONNECTING;
    private byte[] greeting = new byte[ZmtpCodec.GREETING_LENGTH];
    private int greetingLength;
    private SocketPoller.Timer handshakeTimer;
    private boolean paused;

    ZmtpConnection(SocketPoller poller, ZmtpOptions options, Listener listener) {
        this.poller = poller;
        this.options = options;
        this.listener = listener;
        this.reader = new FrameReader(options.maxMessageBytes(), options.budget());
    }

    /** Begins to connect; the listener is notified of every outcome. */
    void connect(SocketAddress address) {
        startHandshakeTimer();
        try {
            channel =
                    address instanceof UnixDomainSocketAddress
                            ? SocketChannel.open(StandardProtocolFamily.UNIX)
                            : SocketChannel.open();
            configure();
            if (channel.connect(address)) {
                key = poller.register(channel, SelectionKey.OP_READ, this);
                connected();
            } else {
                key = poller.register(channel, SelectionKey.OP_CONNECT, this);
            }
        } catch (IOException | RuntimeException e) {
            fail(FailureWords.of(e)); // runtime: an address that no socket can have
        }
    }

    /** Begins the handshake on a connection that a peer has made. */
    void accept(SocketChannel accepted) {
        startHandshakeTimer();
        channel = accepted;
        try {
            configure();
            key = poller.register(channel, SelectionKey.OP_READ, this);
            connected();
        } catch (IOException e) {
            fail(FailureWords.of(e));
        }
    }

    private void startHandshakeTimer() {
        handshakeTimer = poller.schedule(options.handshakeNs(), this::handshakeTooSlow);
    }

    private void configure() throws IOException {
        channel.configureBlocking(false);
        if (!channel.supportedOptions().contains(StandardSocketOptions.TCP_NODELAY)) {
            return; // a Unix socket
        }
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        if (channel.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
            channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, KEEPALIVE_INTERVAL_S);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, KEEPALIVE_PROBES);
        }
    }

    private void connected() throws IOException {
        if (channel.getLocalAddress().equals(channel.getRemoteAddress())
                && !(channel.getLocalAddress() instanceof UnixDomainSocketAddress)) {
            // nothing listens, and the system has chosen the very port that is connected to
            fail("Connection refused");
            return;
        }
        state = State.GREETING;
        write(ZmtpCodec.greeting());
    }

    private void handshakeTooSlow() {
        final long ms = TimeUnit.NANOSECONDS.toMillis(options.handshakeNs());
        fail(
                switch (state) {
                    case CONNECTING -> "does not answer within " + ms + " ms";
                    case GREETING ->
                            "accepts connections, but does not greet as ZMTP within "
                                    + ms
                                    + " ms; check the port";
                    default -> "does not end the ZMTP handshake within " + ms + " ms";
                });
    }

    @Override
    public void ready(SelectionKey ready) {
        try {
            if (ready.isConnectable()) {
                channel.finishConnect();
                key.interestOps(SelectionKey.OP_READ);
                connected();
                return;
            }
            if (ready.isWritable()) {
                flush();
            }
            if (state != State.CLOSED && ready.isReadable()) {
                read();
            }
        } catch (ZmtpException e) {
            fail(e.getMessage());
        } catch (IOException e) {
            fail(FailureWords.of(e));
        }
    }

    private void read() throws IOException, ZmtpException {
        final int count = channel.read(poller.readBuffer());
        if (count < 0) {
            fail(
                    state == State.OPEN
                            ? "the publisher has closed the connection"
                            : "closes the connection before the end of the ZMTP handshake");
            return;
        }
        int from = 0;
        if (state == State.GREETING) {
            from = readGreeting(poller.readBytes(), count);
        }
        if (from < count && !reader.read(poller.readBytes(), from, count, this)) {
            pause();
        }
    }

    private int readGreeting(byte[] bytes, int count) throws ZmtpException {
        final int taken = Math.min(count, ZmtpCodec.GREETING_LENGTH - greetingLength);
        System.arraycopy(bytes, 0, greeting, greetingLength, taken);
        greetingLength += taken;
        ZmtpCodec.checkGreeting(greeting, greetingLength);
        if (greetingLength == ZmtpCodec.GREETING_LENGTH) {
            greeting = null;
            state = State.HANDSHAKE;
            if (options.type().isReadyFirst()) {
                write(ZmtpCodec.ready(options.type()));
            }
        }
        return taken;
    }

    @Override
    public void command(byte[] bytes, int offset, int length) throws ZmtpException {
        final String error = ZmtpCodec.error(bytes, offset, length);
        if (error != null) {
            throw new ZmtpException("refuses the connection: " + error);
        }
        if (state == State.HANDSHAKE) {
            if (!ZmtpCodec.isReady(bytes, offset, length)) {
                throw new ZmtpException("sent another command than READY in the ZMTP handshake");
            }
            open(ZmtpCodec.socketType(bytes, offset, length));
        } else if (state == State.OPEN && unsent.isEmpty()) {
            // a peer that does not read has no use for answers
            final ByteBuffer pong = ZmtpCodec.pong(bytes, offset, length);
            if (pong != null) {
                write(pong);
            }
        }
    }

    private void open(String peerType) throws ZmtpException {
        if (!options.type().fits(peerType)) {
            throw new ZmtpException(
                    "is a ZMQ socket of type '"
                            + peerType
                            + "', not "
                            + options.type().expected()
                            + "; check the port");
        }
        handshakeTimer.cancel();
        state = State.OPEN;
        if (!options.type().isReadyFirst()) {
            write(ZmtpCodec.ready(options.type()));
        }
        if (state == State.OPEN) {
            listener.opened(this);
        }
    }

    @Override
    public boolean message(ZmtpMessage message) throws ZmtpException {
        if (state == State.HANDSHAKE) {
            throw new ZmtpException("sent a message before the end of the ZMTP handshake");
        }
        return state == State.OPEN && listener.received(this, message);
    }

    private void pause() {
        if (state == State.OPEN) {
            paused = true;
            interest();
        }
    }

    /** Goes on with the message that the listener has refused, and reads again if it is taken. */
    public void resume() {
        if (state != State.OPEN || !paused) {
            return;
        }
        try {
            if (reader.resume(this) && state == State.OPEN) {
                paused = false;
                interest();
            }
        } catch (ZmtpException e) {
            fail(e.getMessage());
        }
    }

    private void interest() {
        key.interestOps(
                (paused ? 0 : SelectionKey.OP_READ)
                        | (unsent.isEmpty() ? 0 : SelectionKey.OP_WRITE));
    }

    /** Sends a message; what the peer does not take at once is kept until it does. */
    public void send(byte[]... frames) {
        if (state == State.OPEN) {
            write(ZmtpCodec.message(frames));
        }
    }

    private void write(ByteBuffer bytes) {
        unsent.add(bytes);
        try {
            flush();
        } catch (IOException e) {
            // not here: the caller may be in the middle of something; the next read fails as well
            poller.execute(() -> fail(FailureWords.of(e)));
        }
    }

    private void flush() throws IOException {
        while (!unsent.isEmpty()) {
            channel.write(unsent.peek());
            if (unsent.peek().hasRemaining()) {
                break;
            }
            unsent.poll();
        }
        interest();
    }

    /** Messages that the peer has not taken yet. */
    public int unsent() {
        return unsent.size();
    }

    /** Whether messages can be sent. */
    public boolean isOpen() {
        return state == State.OPEN;
    }

    @Override
    public void failed(Throwable error) {
        fail("an error of ours: " + FailureWords.of(error));
    }

    private void fail(String why) {
        if (state != State.CLOSED) {
            close();
            listener.closed(this, why);
        }
    }

    /** Ends the connection; the listener is not called again. */
    @Override
    public void close() {
        if (state == State.CLOSED) {
            return;
        }
        state = State.CLOSED;
        handshakeTimer.cancel();
        reader.release();
        unsent.clear();
        if (channel != null) {
            try {
                channel.close();
            } catch (IOException e) {
                // it is of no use any more
            }
        }
    }
}
