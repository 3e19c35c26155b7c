package io.kvasir.gateway.server;

import org.eclipse.jetty.io.SelectorManager;
import org.eclipse.jetty.util.IO;

import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A limit of the connections that one client may have open; further ones are closed at once. A
 * client is an address, of IPv6 the half that names its network. Thread-safe.
 */
public final class ClientCap implements SelectorManager.AcceptListener {
    private static final int NETWORK_BYTES = 8;

    private final int most;
    private final Map<ByteBuffer, Integer> open = new ConcurrentHashMap<>();
    private final Map<SelectableChannel, ByteBuffer> clients = new ConcurrentHashMap<>();

    /** Allows each client so many connections. */
    public ClientCap(int most) {
        this.most = most;
    }

    @Override
    public void onAccepting(SelectableChannel channel) {
        final ByteBuffer client = client(channel);
        if (client == null) {
            return; // it has left
        }
        clients.put(channel, client);
        if (open.merge(client, 1, Integer::sum) > most) {
            IO.close(channel);
        }
    }

    @Override
    public void onAcceptFailed(SelectableChannel channel, Throwable cause) {
        onClosed(channel);
    }

    @Override
    public void onClosed(SelectableChannel channel) {
        final ByteBuffer client = clients.remove(channel);
        if (client != null) {
            open.computeIfPresent(client, (_, count) -> count == 1 ? null : count - 1);
        }
    }

    private static ByteBuffer client(SelectableChannel channel) {
        try {
            return channel instanceof SocketChannel socket
                            && socket.getRemoteAddress() instanceof InetSocketAddress from
                    ? client(from.getAddress())
                    : null;
        } catch (IOException e) {
            return null;
        }
    }

    /** What a client's addresses have in common. */
    static ByteBuffer client(InetAddress address) {
        final ByteBuffer bytes = ByteBuffer.wrap(address.getAddress());
        return address instanceof Inet6Address && !address.isLoopbackAddress()
                ? bytes.limit(NETWORK_BYTES)
                : bytes;
    }
}
