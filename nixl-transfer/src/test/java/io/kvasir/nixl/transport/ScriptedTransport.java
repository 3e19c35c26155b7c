package io.kvasir.nixl.transport;

import io.kvasir.nixl.memory.Descriptors;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * A transport that moves nothing, remembers what it was asked for, and does what a test tells it
 * to. A peer's metadata is its name.
 */
public final class ScriptedTransport extends FakeTransport {
    /** A request as it was made. */
    public static final class Made {
        public final Operation operation;
        public final long localList;
        public final int[] local;
        public final long remoteList;
        public final int[] remote;
        public final String notification;
        public boolean posted;
        public Progress progress = Progress.RUNNING;

        private Made(
                Operation operation,
                long localList,
                int[] local,
                long remoteList,
                int[] remote,
                String notification) {
            this.operation = operation;
            this.localList = localList;
            this.local = local;
            this.remoteList = remoteList;
            this.remote = remote;
            this.notification = notification;
        }
    }

    /** Requests that are not released. */
    public final Map<Long, Made> requests = new LinkedHashMap<>();

    /** Every request that was ever made. */
    public final List<Made> all = new ArrayList<>();

    /** Peers that are connected. */
    public final List<String> peers = new ArrayList<>();

    /** Lists that are not released. */
    public final Map<Long, Descriptors> lists = new LinkedHashMap<>();

    /** Messages as {@code "peer text"}. */
    public final List<String> sent = new ArrayList<>();

    /** Thrown by {@link #connect}. */
    public RuntimeException connectFails;

    /** Thrown by {@link #prepare} of a peer's memory. */
    public RuntimeException prepareFails;

    /** Thrown by {@link #disconnect}. */
    public RuntimeException disconnectFails;

    /** Thrown by {@link #request}. */
    public RuntimeException requestFails;

    /** Whether messages cannot be sent. */
    public boolean refuseSend;

    /** Whether posted requests fail. */
    public boolean failAtOnce;

    /** Whether posted requests are done. */
    public boolean doneAtOnce;

    /** Whether requests cannot be given up. */
    public boolean releaseFails;

    /** Messages of a peer that are handed over once. */
    public final Queue<String> received = new ConcurrentLinkedQueue<>();

    public volatile boolean closed;
    private long next = 1;

    @Override
    public String name() {
        return "scripted";
    }

    @Override
    public String connect(byte[] metadata) {
        if (connectFails != null) {
            throw connectFails;
        }
        final String peer = text(metadata);
        if (!peers.contains(peer)) {
            peers.add(peer);
        }
        return peer;
    }

    @Override
    public void disconnect(String peer) {
        if (disconnectFails != null) {
            throw disconnectFails;
        }
        peers.remove(peer);
    }

    @Override
    public long prepare(String peer, Descriptors descriptors) {
        if (peer != null && prepareFails != null) {
            throw prepareFails;
        }
        lists.put(next, descriptors);
        return next++;
    }

    @Override
    public void releaseList(long list) {
        if (!lists.containsKey(list)) {
            throw new KvTransportException(KvTransportException.Kind.INVALID, "no list " + list);
        }
        for (Made made : requests.values()) {
            if (made.localList == list || made.remoteList == list) {
                throw new KvTransportException(
                        KvTransportException.Kind.INVALID, "list " + list + " has requests");
            }
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
        if (requestFails != null) {
            throw requestFails;
        }
        RequestCheck.message(name(), notification);
        final Made made =
                new Made(
                        operation,
                        localList,
                        Arrays.copyOfRange(localIndices, first, first + count),
                        remoteList,
                        Arrays.copyOfRange(remoteIndices, first, first + count),
                        notification == null ? null : text(notification));
        all.add(made);
        requests.put(next, made);
        return next++;
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    @Override
    public Progress post(long request) {
        final Made made = requests.get(request);
        made.posted = true;
        if (doneAtOnce) {
            made.progress = Progress.DONE;
        }
        if (failAtOnce) {
            made.progress = Progress.FAILED;
        }
        return made.progress;
    }

    @Override
    public Progress status(long request) {
        return requests.get(request).progress;
    }

    @Override
    public String failure(long request) {
        return "scripted failure";
    }

    @Override
    public boolean release(long request) {
        if (releaseFails) {
            return false;
        }
        requests.remove(request);
        return true;
    }

    @Override
    public void send(String peer, byte[] message) {
        if (refuseSend) {
            throw new KvTransportException(KvTransportException.Kind.PEER_LOST, "told so");
        }
        RequestCheck.message(name(), message);
        sent.add(peer + " " + text(message));
    }

    @Override
    public int notifications(NotificationHandler handler) {
        int count = 0;
        for (String message = received.poll(); message != null; message = received.poll()) {
            final byte[] bytes = message.getBytes(StandardCharsets.UTF_8);
            handler.onNotification("peer", MemorySegment.ofArray(bytes));
            count++;
        }
        return count;
    }

    @Override
    public void close() {
        closed = true;
    }
}
