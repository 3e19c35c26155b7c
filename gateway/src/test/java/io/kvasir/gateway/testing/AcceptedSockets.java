package io.kvasir.gateway.testing;

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** Connections of a server that is written to the socket; each has a virtual thread of its own. */
public final class AcceptedSockets implements AutoCloseable {
    /** What a connection is used for until it ends. */
    public interface Service {
        /** Returns at the end of its use; the connection is closed then. */
        void serve(Socket socket) throws IOException, InterruptedException;
    }

    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private final Service service;

    /** Has none yet. */
    public AcceptedSockets(Service service) {
        this.service = service;
    }

    /** Accepts connections until the socket is closed. Returns at once. */
    public void acceptFrom(ServerSocket listening) {
        Thread.ofVirtual().start(() -> accept(listening));
    }

    private void accept(ServerSocket listening) {
        while (true) {
            try {
                final Socket socket = listening.accept();
                sockets.add(socket);
                Thread.ofVirtual().start(() -> serve(socket));
            } catch (IOException e) {
                return; // closed
            }
        }
    }

    private void serve(Socket socket) {
        try (socket) {
            socket.setTcpNoDelay(true);
            service.serve(socket);
        } catch (IOException e) {
            // the gateway has closed it
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            sockets.remove(socket);
        }
    }

    /** Closes all that are open; the sockets that are listened at are their owner's. */
    @Override
    public void close() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
    }
}
