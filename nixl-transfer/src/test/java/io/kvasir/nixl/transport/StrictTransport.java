package io.kvasir.nixl.transport;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * A transport that moves nothing, fails by chance where the contract lets it, and notes each use
 * that the contract does not allow. A peer's metadata is its name, or name and life with a '#'
 * between: a later life is connected once the former one is disconnected.
 */
public final class StrictTransport extends FakeTransport {
    /** A prepared list; of a peer that was disconnected since, it is worth nothing. */
    private static final class Prepared {
        private final String peer; // null for own memory
        private boolean stale;
        private int requests;

        private Prepared(String peer) {
            this.peer = peer;
        }
    }

    private static final class Made {
        private final Prepared local;
        private final Prepared remote;
        private final int[] localIndices;
        private final byte[] notification;
        private boolean posted;
        private Progress progress = Progress.RUNNING;

        private Made(Prepared local, Prepared remote, int[] localIndices, byte[] notification) {
            this.local = local;
            this.remote = remote;
            this.localIndices = localIndices;
            this.notification = notification;
        }
    }

    /** What was done that must not be. */
    public final List<String> violations = new ArrayList<>();

    /** Peers that are connected, and which life of each. */
    public final Map<String, String> peers = new HashMap<>();

    /** Messages as {@code "peer text"}. */
    public final List<String> sent = new ArrayList<>();

    /** Local indices of requests that are done, in order of their ends. */
    public final List<Integer> moved = new ArrayList<>();

    /** One of so many calls fails; 0 for none. */
    public int faults;

    private final Random random;
    private final Map<String, List<Prepared>> ofPeers = new HashMap<>();
    private final Map<Long, Prepared> lists = new HashMap<>();
    private final Map<Long, Made> requests = new HashMap<>();
    private long next = 1;
    private boolean closed;

    public StrictTransport(Random random) {
        this.random = random;
    }

    /** Lists of peers' memory that are not released. */
    public long remoteLists() {
        return lists.values().stream().filter(list -> list.peer != null).count();
    }

    /** Lists of own memory that are not released. */
    public long localLists() {
        return lists.size() - remoteLists();
    }

    /** Requests that are not released. */
    public int requests() {
        return requests.size();
    }

    private boolean fails() {
        return faults > 0 && random.nextInt(faults) == 0;
    }

    private void failByChance(Kind kind) {
        requireOpen();
        if (fails()) {
            throw new KvTransportException(kind, "by chance");
        }
    }

    private void requireOpen() {
        if (closed) {
            throw violation("a call of a closed transport");
        }
    }

    private AssertionError violation(String what) {
        violations.add(what);
        return new AssertionError(what);
    }

    private <T> T known(Map<Long, T> all, long handle) {
        requireOpen();
        final T known = all.get(handle);
        if (known == null) {
            throw violation("a use of " + handle + " after its release");
        }
        return known;
    }

    @Override
    public String name() {
        return "strict";
    }

    @Override
    public String connect(byte[] metadata) {
        failByChance(Kind.BAD_METADATA);
        final String life = new String(metadata, StandardCharsets.UTF_8);
        final int end = life.indexOf('#');
        final String peer = end < 0 ? life : life.substring(0, end);
        final String before = peers.putIfAbsent(peer, life);
        if (before != null && !before.equals(life)) {
            throw violation(life + " is connected beside " + before);
        }
        return peer;
    }

    @Override
    public void disconnect(String peer) {
        requireOpen();
        peers.remove(peer);
        final List<Prepared> worthless = ofPeers.remove(peer);
        if (worthless != null) {
            worthless.forEach(list -> list.stale = true);
        }
    }

    @Override
    public long prepare(String peer, Descriptors descriptors) {
        failByChance(Kind.INVALID);
        if (peer != null && !peers.containsKey(peer)) {
            throw new KvTransportException(Kind.UNKNOWN_PEER, peer);
        }
        final Prepared list = new Prepared(peer);
        if (peer != null) {
            ofPeers.computeIfAbsent(peer, _ -> new ArrayList<>()).add(list);
        }
        lists.put(next, list);
        return next++;
    }

    @Override
    public void releaseList(long list) {
        if (known(lists, list).requests > 0) {
            throw new KvTransportException(Kind.INVALID, list + " has requests");
        }
        lists.remove(list);
    }

    @Override
    public long request(
            Operation operation,
            long localList,
            int[] localIndices,
            long remoteList,
            int[] remoteIndices,
            int first,
            int count,
            byte[] notification) {
        final Prepared local = known(lists, localList);
        final Prepared remote = known(lists, remoteList);
        failByChance(random.nextBoolean() ? Kind.INVALID : Kind.PEER_LOST);
        if (remote.stale) {
            throw new KvTransportException(Kind.PEER_LOST, "disconnected");
        }
        local.requests++;
        remote.requests++;
        final int[] indices = Arrays.copyOfRange(localIndices, first, first + count);
        requests.put(next, new Made(local, remote, indices, notification));
        return next++;
    }

    @Override
    public Progress post(long request) {
        final Made made = known(requests, request);
        if (made.posted) {
            throw violation(request + " is posted twice");
        }
        made.posted = true;
        return status(request);
    }

    @Override
    public Progress status(long request) {
        final Made made = known(requests, request);
        if (!made.posted) {
            throw violation(request + " was not posted");
        }
        if (made.progress == Progress.RUNNING && (made.remote.stale || fails())) {
            made.progress = Progress.FAILED;
        } else if (made.progress == Progress.RUNNING && random.nextInt(3) == 0) {
            made.progress = Progress.DONE;
            Arrays.stream(made.localIndices).forEach(moved::add);
            if (made.notification != null) {
                note(made.remote.peer, made.notification);
            }
        }
        return made.progress;
    }

    @Override
    public String failure(long request) {
        if (known(requests, request).progress != Progress.FAILED) {
            throw violation(request + " has not failed");
        }
        return "failed by chance";
    }

    @Override
    public boolean release(long request) {
        final Made made = known(requests, request);
        if (made.posted && faults > 0 && random.nextInt(3) > 0) {
            return false;
        }
        made.local.requests--;
        made.remote.requests--;
        requests.remove(request);
        return true;
    }

    @Override
    public void send(String peer, byte[] message) {
        failByChance(Kind.PEER_LOST);
        if (!peers.containsKey(peer)) {
            throw new KvTransportException(Kind.UNKNOWN_PEER, peer);
        }
        note(peer, message);
    }

    private void note(String peer, byte[] message) {
        sent.add(peer + " " + new String(message, StandardCharsets.UTF_8));
    }

    @Override
    public int notifications(NotificationHandler handler) {
        requireOpen();
        return 0;
    }

    @Override
    public void close() {
        closed = true;
    }
}
