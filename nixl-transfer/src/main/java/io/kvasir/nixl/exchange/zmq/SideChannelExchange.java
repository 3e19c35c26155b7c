package io.kvasir.nixl.exchange.zmq;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.PeerDirectory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.PublishedRecords;
import io.kvasir.nixl.exchange.ViewedExchange;
import io.kvasir.nixl.exchange.zmq.SideChannelWire.Answer;
import io.kvasir.nixl.exchange.zmq.SideChannelWire.Version;
import io.kvasir.registry.HostPort;

import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;

import java.net.BindException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/**
 * Exchanges records from peer to peer over ZMQ, with no server between: an end that knows where a
 * peer's side channel listens asks it each heartbeat for what has changed. A peer that does not
 * answer for {@link SideChannelConfig#silence} is removed with its records until it answers again.
 *
 * <p>Not encrypted and not authenticated: for networks of a cluster. One daemon thread answers and
 * asks; it is also the one that calls listeners.
 */
public final class SideChannelExchange extends ViewedExchange {
    private static final int MAX_QUESTION_BYTES = 1 << 10;
    private static final int MAX_TICK_MS = 50;
    private static final int MAX_PORT = 65_535;
    private static final long CLOSE_PATIENCE_NS = TimeUnit.MINUTES.toNanos(1);
    private static final String SELF = "self";
    private static final byte[] NO_FRAME = new byte[0];

    /** What is answered, whole. */
    private record Published(Version version, List<byte[]> records) {}

    private final SideChannelConfig config;
    private final LongSupplier clock; // ns; asked for heartbeats and silence
    private final ZContext context;
    private final ZMQ.Socket router;
    private final int port;
    private final long instance = ThreadLocalRandom.current().nextLong() | 1; // not 0: none
    private final PublishedRecords own = new PublishedRecords();
    private final HostLookups lookups;
    private final Set<SideAddress> known = ConcurrentHashMap.newKeySet();
    private final Map<SideAddress, SidePeer> peers = new HashMap<>(); // the thread's
    private final AtomicLong questions = new AtomicLong();
    private final Thread thread;
    private boolean yielded; // published has a record that is not own any more; under the lock
    private long yieldedNs;
    private volatile Published published = new Published(new Version(instance, 0), List.of());
    private volatile boolean closed;

    /**
     * Binds and answers from now on.
     *
     * @param host address to bind
     * @param port port to bind; 0 takes a free one
     * @param config limits
     * @throws ExchangeException of kind {@code UNAVAILABLE} if it cannot be bound
     */
    public SideChannelExchange(String host, int port, SideChannelConfig config) {
        this(host, port, config, System::nanoTime, HostLookups::ipv4);
    }

    SideChannelExchange(
            String host,
            int port,
            SideChannelConfig config,
            LongSupplier clock,
            HostLookups.Resolver resolver) {
        Objects.requireNonNull(host, "host");
        this.config = Objects.requireNonNull(config, "config");
        this.clock = clock;
        context = new ZContext(1);
        context.setLinger(0);
        // one a peer, and those that are being closed while all peers get a new one
        context.getContext().setMaxSockets(2 * config.maxPeers() + 1);
        router = context.createSocket(SocketType.ROUTER);
        router.setHandshakeIvl(SidePeer.CONNECTION_HANDSHAKE_MS);
        FrameLimit.set(router, MAX_QUESTION_BYTES);
        try {
            this.port = BoundPort.bind(router, host, port);
        } catch (BindException e) {
            context.close();
            throw new ExchangeException(Kind.UNAVAILABLE, e.getMessage(), e);
        }
        lookups = new HostLookups(resolver);
        thread = Thread.ofPlatform().daemon().name("kvasir-exchange-" + this.port).start(this::run);
    }

    /**
     * Where it listens.
     *
     * @return the bound port
     */
    public int port() {
        return port;
    }

    /**
     * Asks a peer from now on, whether it runs already or not. Knowing it twice is knowing it once.
     * A host whose name is unknown is looked up again each {@link SideChannelConfig#silence}; other
     * peers do not wait for it.
     *
     * @param host of its side channel
     * @param peerPort of its side channel
     * @throws IllegalArgumentException if that is no port
     * @throws ExchangeException of kind {@code CAPACITY} if {@code maxPeers} others are known
     */
    public void know(String host, int peerPort) {
        final SideAddress address = new SideAddress(host, peerPort);
        if (peerPort < 1 || peerPort > MAX_PORT) {
            throw new IllegalArgumentException(
                    HostPort.of(host, peerPort) + ": ports are 1 to " + MAX_PORT);
        }
        synchronized (known) {
            if (!known.contains(address) && known.size() >= config.maxPeers()) {
                throw new ExchangeException(
                        Kind.CAPACITY,
                        known.size()
                                + " peers are known, no room for "
                                + HostPort.of(host, peerPort)
                                + "; raise SideChannelConfig.maxPeers");
            }
            known.add(address);
        }
    }

    /**
     * Does not ask a peer any more; its records are removed soon.
     *
     * @param host of its side channel
     * @param peerPort of its side channel
     */
    public void forget(String host, int peerPort) {
        known.remove(new SideAddress(host, peerPort));
    }

    @Override
    public synchronized void publish(PeerRecord record) {
        requireOpen();
        Objects.requireNonNull(record, "record");
        PeerDirectory.requireNewer(record, view.get(record.name()));
        own.check(record);
        if (own.put(record)) {
            changed();
            view.offer(record, SELF, clock.getAsLong());
        }
    }

    @Override
    public synchronized void withdraw(String name) {
        if (own.remove(name) != null) {
            changed();
            view.removed(name, SELF);
        }
    }

    /**
     * A record that is superseded is sent for a while longer: a peer without the newer one would
     * take it for removed. No peer takes it for the newest.
     */
    private synchronized void yieldTo(PeerRecord newer, long nowNs) {
        if (own.removeIfOlderThan(newer)) {
            yielded = true;
            yieldedNs = nowNs;
        }
    }

    private synchronized void dropYielded(long beforeNs) {
        if (yielded && yieldedNs - beforeNs <= 0) {
            changed();
        }
    }

    private void changed() {
        yielded = false;
        published =
                new Published(
                        new Version(instance, published.version.revision() + 1),
                        own.all().stream().map(PeerRecord::encode).toList());
    }

    private void requireOpen() {
        if (closed) {
            throw new ExchangeException(Kind.UNAVAILABLE, "the side channel is closed");
        }
    }

    /**
     * Questions of peers that were answered.
     *
     * @return count since the start
     */
    public long questions() {
        return questions.get();
    }

    // -- the thread

    /** Ends with all that it uses, however long {@link #close} waits. */
    private void run() {
        try {
            serve();
        } finally {
            closed = true;
            view.close();
            lookups.close();
            context.close();
        }
    }

    private void serve() {
        final ZMQ.Poller poller = context.createPoller(config.maxPeers() + 1);
        poller.register(router, ZMQ.Poller.POLLIN);
        final int tickMs =
                Math.clamp(TimeUnit.NANOSECONDS.toMillis(config.heartbeatNs()) / 4, 1, MAX_TICK_MS);
        while (!closed) {
            poller.poll(tickMs);
            answerAll();
            hearAll();
            meetPeers(poller);
            askAll(poller);
            dropYielded(clock.getAsLong() - config.silenceNs());
        }
        sayGoodbye(poller);
        poller.close();
    }

    /** Answers that nothing is published any more until each peer should have asked. */
    private void sayGoodbye(ZMQ.Poller poller) {
        dropYielded(clock.getAsLong());
        if (published.records.isEmpty()) {
            return;
        }
        own.all().forEach(record -> withdraw(record.name()));
        final long patienceNs = 2 * Math.min(config.heartbeatNs(), Long.MAX_VALUE / 2);
        final long startNs = clock.getAsLong();
        while (clock.getAsLong() - startNs < patienceNs) {
            poller.poll(1);
            answerAll();
        }
    }

    private void answerAll() {
        for (byte[] asker = router.recv(ZMQ.DONTWAIT);
                asker != null;
                asker = router.recv(ZMQ.DONTWAIT)) {
            final List<byte[]> frames = rest(router, 1);
            try {
                final Version lastSeen =
                        SideChannelWire.parseQuestion(frames.isEmpty() ? NO_FRAME : frames.get(0));
                answer(asker, lastSeen, published);
            } catch (ExchangeException e) {
                countMalformed();
            }
        }
    }

    private void answer(byte[] asker, Version lastSeen, Published now) {
        final boolean same = lastSeen.equals(now.version);
        final int count = same ? 0 : now.records.size();
        router.send(asker, ZMQ.SNDMORE);
        router.send(
                SideChannelWire.answer(now.version, same ? SideChannelWire.UNCHANGED : count),
                count > 0 ? ZMQ.SNDMORE : 0);
        for (int i = 0; i < count; i++) {
            router.send(now.records.get(i), i < count - 1 ? ZMQ.SNDMORE : 0);
        }
        questions.incrementAndGet();
    }

    /** The other frames of a message; those beyond the limit are dropped. */
    private static List<byte[]> rest(ZMQ.Socket socket, int limit) {
        final List<byte[]> frames = new ArrayList<>();
        while (socket.hasReceiveMore()) {
            final byte[] frame = socket.recv();
            if (frames.size() < limit) {
                frames.add(frame);
            }
        }
        return frames;
    }

    private void hearAll() {
        for (SidePeer peer : peers.values()) {
            for (byte[] header = peer.socket().recv(ZMQ.DONTWAIT);
                    header != null;
                    header = peer.socket().recv(ZMQ.DONTWAIT)) {
                final List<byte[]> frames = rest(peer.socket(), MAX_OWN);
                try {
                    apply(peer, SideChannelWire.parseAnswer(header), frames);
                } catch (ExchangeException e) {
                    countMalformed();
                }
            }
        }
    }

    private void apply(SidePeer peer, Answer answer, List<byte[]> frames) {
        final long nowNs = clock.getAsLong();
        if (answer.count() == SideChannelWire.UNCHANGED) {
            peer.answered(answer.version(), null, nowNs);
        } else {
            final List<PeerRecord> records = new ArrayList<>(frames.size());
            for (byte[] frame : frames) {
                try {
                    records.add(PeerRecord.decode(frame));
                } catch (ExchangeException e) {
                    countMalformed();
                }
            }
            peer.answered(answer.version(), records, nowNs);
            final List<String> names = records.stream().map(PeerRecord::name).toList();
            view.goneFrom(peer.endpoint(), name -> !names.contains(name));
        }
        for (PeerRecord record :
                peer.records()) { // also known ones: what was before them may be gone
            view.offer(record, peer.endpoint(), nowNs);
            yieldTo(record, nowNs);
        }
    }

    private void meetPeers(ZMQ.Poller poller) {
        if (known.size() == peers.size() && peers.keySet().containsAll(known)) {
            return;
        }
        final long nowNs = clock.getAsLong();
        for (SideAddress address : known) {
            if (!peers.containsKey(address)) {
                final SidePeer peer = new SidePeer(context, lookups, address, nowNs);
                peer.open(poller);
                peer.askNow(nowNs);
                peers.put(address, peer);
            }
        }
        peers.values()
                .removeIf(
                        peer -> {
                            if (known.contains(peer.address())) {
                                return false;
                            }
                            view.goneFrom(peer.endpoint(), name -> true);
                            peer.close(poller);
                            return true;
                        });
    }

    private void askAll(ZMQ.Poller poller) {
        final long nowNs = clock.getAsLong();
        for (SidePeer peer : peers.values()) {
            if (peer.fallsSilent(config, nowNs)) {
                view.goneFrom(peer.endpoint(), name -> true);
                peer.reopen(poller);
            }
            peer.ask(config, poller, nowNs);
        }
    }

    /**
     * As promised; takes two heartbeats if something is published, so that peers see it. A thread
     * that is interrupted waits all the same, and stays interrupted. After a minute the exchange
     * ends by itself; so it does if a listener calls this, which does not wait then.
     */
    @Override
    public void close() {
        closed = true;
        view.close();
        if (Thread.holdsLock(view)) {
            return; // a listener, for which the thread waits, or which runs on it
        }
        final long startNs = System.nanoTime();
        boolean interrupted = false;
        long leftNs = CLOSE_PATIENCE_NS;
        while (thread.isAlive() && leftNs > 0) {
            try {
                TimeUnit.NANOSECONDS.timedJoin(thread, leftNs);
            } catch (InterruptedException e) {
                interrupted = true;
            }
            leftNs = CLOSE_PATIENCE_NS - (System.nanoTime() - startNs);
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
