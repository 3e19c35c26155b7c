package io.kvasir.nixl.exchange.zmq;

import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.zmq.SideChannelWire.Version;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.List;
import java.util.concurrent.Future;

/** One peer of a side channel: its socket and what it has said. Of the exchange's thread. */
final class SidePeer {
    /** A connection lost while connecting is only given up, and made anew, after this time. */
    static final int CONNECTION_HANDSHAKE_MS = 1_000;

    private final ZContext context;
    private final HostLookups lookups;
    private final SideAddress address;
    private final String endpoint;
    private ZMQ.Socket socket;
    private Future<InetAddress> lookup; // null once the socket is connected, or cannot be
    private boolean asked;
    private long askedNs;
    private long lastSeenNs;
    private Version lastSeen = Version.NONE;
    private List<PeerRecord> records = List.of();

    SidePeer(ZContext context, HostLookups lookups, SideAddress address, long nowNs) {
        this.context = context;
        this.lookups = lookups;
        this.address = address;
        this.endpoint = address.endpoint();
        askedNs = nowNs;
        lastSeenNs = nowNs;
    }

    SideAddress address() {
        return address;
    }

    String endpoint() {
        return endpoint;
    }

    ZMQ.Socket socket() {
        return socket;
    }

    List<PeerRecord> records() {
        return records;
    }

    /** Connects once the host is looked up; if its name is unknown, it is silent until reopened. */
    void open(ZMQ.Poller poller) {
        socket = context.createSocket(SocketType.DEALER);
        socket.setHandshakeIvl(CONNECTION_HANDSHAKE_MS);
        FrameLimit.set(socket, PeerRecord.MAX_BYTES);
        poller.register(socket, ZMQ.Poller.POLLIN);
        asked = false;
        lookup = lookups.find(address.host());
        connectIfFound();
    }

    /** Returns whether the lookup is over; without a connection nothing is sent or received. */
    private boolean connectIfFound() {
        if (!lookup.isDone()) {
            return false;
        }
        if (lookup.state() == Future.State.SUCCESS) {
            connect(lookup.resultNow());
        }
        lookup = null;
        return true;
    }

    private void connect(InetAddress host) {
        socket.setIPv6(host instanceof Inet6Address);
        try {
            socket.connect(new SideAddress(host.getHostAddress(), address.port()).endpoint());
        } catch (ZMQException e) {
            // as of an unknown name: the next silence makes a new socket
        }
    }

    void close(ZMQ.Poller poller) {
        if (lookup != null) {
            lookup.cancel(false);
        }
        poller.unregister(socket);
        socket.close();
    }

    /** With a new connection, an answer to an earlier question cannot come any more. */
    void reopen(ZMQ.Poller poller) {
        close(poller);
        open(poller);
    }

    /** Asks if it is time to; a peer that does not answer gets a new connection. */
    void ask(SideChannelConfig config, ZMQ.Poller poller, long nowNs) {
        if (lookup != null) {
            if (connectIfFound()) {
                askNow(nowNs);
            }
            return;
        }
        final long sinceNs = nowNs - askedNs;
        if (asked && sinceNs >= config.silenceNs()) {
            reopen(poller);
        }
        if (!asked && sinceNs >= config.heartbeatNs()) {
            askNow(nowNs);
        }
    }

    void askNow(long nowNs) {
        asked = true;
        askedNs = nowNs;
        socket.send(SideChannelWire.question(lastSeen), ZMQ.DONTWAIT);
    }

    /** It has answered; the records are null if they have not changed. */
    void answered(Version version, List<PeerRecord> changed, long nowNs) {
        asked = false;
        lastSeenNs = nowNs;
        lastSeen = version;
        if (changed != null) {
            records = changed;
        }
    }

    /** Whether it has just been silent for too long; it is then asked for everything again. */
    boolean fallsSilent(SideChannelConfig config, long nowNs) {
        if (lastSeen.equals(Version.NONE) || nowNs - lastSeenNs < config.silenceNs()) {
            return false;
        }
        lastSeen = Version.NONE;
        records = List.of();
        return true;
    }
}
