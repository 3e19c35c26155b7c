package io.kvasir.nixl.transfer;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A transport that moves nothing and does what a test tells it to. */
final class ScriptedTransport implements KvTransport {
    /** A request as it was made. */
    static final class Made {
        final Operation operation;
        final int[] local;
        final int[] remote;
        final String notification;
        boolean posted;
        Progress progress = Progress.RUNNING;

        Made(Operation operation, int[] local, int[] remote, String notification) {
            this.operation = operation;
            this.local = local;
            this.remote = remote;
            this.notification = notification;
        }
    }

    final Map<Long, Made> requests = new LinkedHashMap<>();
    final List<Made> all = new ArrayList<>();
    final Set<String> peers = new HashSet<>();
    boolean doneAtOnce;
    boolean releaseFails;
    boolean closed;
    private long next = 1;

    @Override
    public String name() {
        return "scripted";
    }

    @Override
    public void register(List<KvRegion> regions) {}

    @Override
    public void deregister(List<KvRegion> regions) {}

    @Override
    public byte[] metadata() {
        return new byte[] {1};
    }

    @Override
    public String connect(byte[] metadata) {
        final String peer = new String(metadata, StandardCharsets.US_ASCII);
        peers.add(peer);
        return peer;
    }

    @Override
    public void disconnect(String peer) {
        peers.remove(peer);
    }

    @Override
    public long prepare(String peer, Descriptors pieces) {
        return next++;
    }

    @Override
    public void releaseList(long list) {}

    @Override
    public long request(
            Operation operation,
            long localList,
            int[] localPlaces,
            long remoteList,
            int[] remotePlaces,
            int count,
            byte[] notification) {
        final Made made =
                new Made(
                        operation,
                        Arrays.copyOf(localPlaces, count),
                        Arrays.copyOf(remotePlaces, count),
                        notification == null
                                ? null
                                : new String(notification, StandardCharsets.US_ASCII));
        all.add(made);
        requests.put(next, made);
        return next++;
    }

    @Override
    public Progress post(long request) {
        final Made made = requests.get(request);
        made.posted = true;
        if (doneAtOnce) {
            made.progress = Progress.DONE;
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
    public boolean telemetry(long request, TransferTelemetry out) {
        return false;
    }

    @Override
    public void send(String peer, byte[] message) {}

    @Override
    public int notifications(NotificationHandler handler) {
        return 0;
    }

    @Override
    public void close() {
        closed = true;
    }
}
