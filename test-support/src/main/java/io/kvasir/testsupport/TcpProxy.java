package io.kvasir.testsupport;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A port that passes connections on to another one of this machine, and can be cut as a network
 * can: connections stay, and nothing comes through in either direction until it is whole again.
 */
public final class TcpProxy implements AutoCloseable {
    private static final int BUFFER_BYTES = 1 << 14;

    private final int target;
    private final ServerSocket server;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private boolean cut; // guarded by this
    private boolean closed; // guarded by this

    /**
     * Listens on a free port.
     *
     * @param target port that connections are passed on to
     * @throws IOException if it cannot listen
     */
    public TcpProxy(int target) throws IOException {
        this.target = target;
        server = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Thread.ofVirtual().start(this::accept);
    }

    /** Where it listens. */
    public int port() {
        return server.getLocalPort();
    }

    /** Lets nothing through any more; connections are neither ended nor made. */
    public synchronized void cut() {
        cut = true;
    }

    /** The same, and ends the connections that there are. */
    public synchronized void sever() {
        cut = true;
        endAll();
    }

    /** Lets everything through again, what has been sent meanwhile first. */
    public synchronized void heal() {
        cut = false;
        notifyAll();
    }

    private synchronized boolean awaitWhole() {
        try {
            while (cut && !closed) {
                wait();
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
        return !closed;
    }

    private void accept() {
        try {
            while (true) {
                final Socket client = server.accept();
                sockets.add(client);
                Thread.ofVirtual().start(() -> connect(client));
            }
        } catch (IOException e) {
            endAll(); // closed
        }
    }

    private void connect(Socket client) {
        final Socket upstream = new Socket();
        sockets.add(upstream);
        try {
            if (awaitWhole()) {
                upstream.connect(new InetSocketAddress(InetAddress.getLoopbackAddress(), target));
                final Thread back =
                        Thread.ofVirtual()
                                .start(
                                        () -> {
                                            pass(upstream, client);
                                            end(client);
                                            end(upstream);
                                        });
                pass(client, upstream);
                end(upstream);
                back.join();
            }
        } catch (IOException e) {
            // no server there: the client sees its connection end
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            end(client);
            end(upstream);
        }
    }

    private void pass(Socket from, Socket to) {
        final byte[] buffer = new byte[BUFFER_BYTES];
        try {
            final InputStream in = from.getInputStream();
            final OutputStream out = to.getOutputStream();
            for (int n = in.read(buffer); n >= 0 && awaitWhole(); n = in.read(buffer)) {
                out.write(buffer, 0, n);
            }
            awaitWhole(); // an end is news, too
        } catch (IOException e) {
            awaitWhole();
        }
    }

    private void end(Socket socket) {
        sockets.remove(socket);
        try {
            socket.close();
        } catch (IOException e) {
            throw new IllegalStateException("cannot close " + socket, e);
        }
    }

    private void endAll() {
        sockets.forEach(this::end);
    }

    @Override
    public void close() throws IOException {
        synchronized (this) {
            closed = true;
            notifyAll();
        }
        server.close();
        endAll();
    }
}
