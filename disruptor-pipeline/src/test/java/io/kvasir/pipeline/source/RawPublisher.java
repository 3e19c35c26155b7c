package io.kvasir.pipeline.source;

import io.kvasir.testsupport.FreePorts;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A publisher at the level of bytes: accepts any number of connections on all loopback addresses,
 * writes what it is given, and reads nothing. One descriptor for each connection and one thread.
 */
final class RawPublisher implements AutoCloseable {
    /** What is done with a new connection. */
    interface Greeter {
        void greet(SocketChannel connection) throws IOException;
    }

    private static final int BACKLOG = 4_096;

    private final ServerSocketChannel server;
    private final List<SocketChannel> connections = new CopyOnWriteArrayList<>();
    private final AtomicInteger accepted = new AtomicInteger();
    private final Greeter greeter;
    private final Thread thread;
    private volatile boolean closed;

    /** A publisher that does the handshake, on any free port. */
    RawPublisher() {
        this(0, connection -> write(connection, hello("PUB")));
    }

    RawPublisher(int port, Greeter greeter) {
        this.greeter = greeter;
        try {
            server = ServerSocketChannel.open();
            bind(port);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        thread = new Thread(this::accept, "test-raw-publisher");
        thread.setDaemon(true);
        thread.start();
    }

    /** Unless it is given, a port that no connection takes while the publisher is away. */
    private void bind(int port) throws IOException {
        for (int tries = 0; port == 0 && tries < 100; tries++) {
            try {
                server.bind(new InetSocketAddress("0.0.0.0", FreePorts.run(1)), BACKLOG);
                return;
            } catch (BindException e) {
                // another process was faster
            }
        }
        server.bind(new InetSocketAddress("0.0.0.0", port), BACKLOG);
    }

    private void accept() {
        while (!closed) {
            try {
                final SocketChannel connection = server.accept();
                accepted.incrementAndGet();
                greeter.greet(connection);
                connections.add(connection);
            } catch (IOException e) {
                // the peer has left, or this publisher is closed
            }
        }
    }

    int port() {
        return server.socket().getLocalPort();
    }

    /** An address of this publisher; each number gives another one. */
    String endpoint(int number) {
        return "tcp://127.0." + (1 + number / 250) + "." + (1 + number % 250) + ":" + port();
    }

    int accepted() {
        return accepted.get();
    }

    /** Connections that were greeted and not dropped. */
    int connections() {
        return connections.size();
    }

    /** Writes bytes to all connections. */
    void send(byte[] bytes) {
        for (SocketChannel connection : List.copyOf(connections)) {
            try {
                write(connection, bytes);
            } catch (IOException e) {
                connections.remove(connection);
            }
        }
    }

    /** Writes bytes to all connections and leaves them open; what follows goes to newer ones. */
    void sendAndForget(byte[] bytes) {
        for (SocketChannel connection : List.copyOf(connections)) {
            connections.remove(connection);
            try {
                write(connection, bytes);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    /** Closes the connections; new ones are accepted. */
    void drop() {
        for (SocketChannel connection : List.copyOf(connections)) {
            connections.remove(connection);
            try {
                connection.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    static void write(SocketChannel connection, byte[] bytes) throws IOException {
        final ByteBuffer buffer = ByteBuffer.wrap(bytes);
        while (buffer.hasRemaining()) {
            connection.write(buffer);
        }
    }

    /** Greeting and READY of a socket type. */
    static byte[] hello(String type) {
        final byte[] name = "Socket-Type".getBytes(StandardCharsets.US_ASCII);
        final ByteBuffer bytes = ByteBuffer.allocate(256);
        bytes.put((byte) 0xff).putLong(1).put((byte) 0x7f).put((byte) 3).put((byte) 1);
        bytes.put("NULL".getBytes(StandardCharsets.US_ASCII)).position(64);
        bytes.put((byte) 4).put((byte) (6 + 1 + name.length + 4 + type.length()));
        bytes.put((byte) 5).put("READY".getBytes(StandardCharsets.US_ASCII));
        bytes.put((byte) name.length).put(name).putInt(type.length());
        bytes.put(type.getBytes(StandardCharsets.US_ASCII));
        return array(bytes);
    }

    /** An event message on the wire. */
    static byte[] message(String topic, long sequence, byte[] payload) {
        final ByteBuffer bytes = ByteBuffer.allocate(64 + topic.length() + payload.length);
        bytes.put((byte) 1).put((byte) topic.length());
        bytes.put(topic.getBytes(StandardCharsets.US_ASCII));
        bytes.put((byte) 1).put((byte) Long.BYTES).putLong(sequence);
        bytes.put((byte) 2).putLong(payload.length).put(payload);
        return array(bytes);
    }

    private static byte[] array(ByteBuffer bytes) {
        final byte[] array = new byte[bytes.position()];
        bytes.flip().get(array);
        return array;
    }

    @Override
    public void close() {
        closed = true;
        try {
            server.close();
            thread.join(); // its port is free only now
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        drop();
    }
}
