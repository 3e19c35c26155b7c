package io.kvasir.nixl.vllm;

import io.kvasir.nixl.transfer.Descriptors;
import io.kvasir.nixl.transfer.KvRegion;
import io.kvasir.nixl.transfer.KvTransport;
import io.kvasir.nixl.transfer.KvTransportException;
import io.kvasir.nixl.transfer.TransferTelemetry;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Moves nothing; remembers what it was asked for and refuses what it is told to refuse. */
final class FakeTransport implements KvTransport {
    /** A request as it was made. */
    record Read(
            long localList,
            List<Integer> local,
            long remoteList,
            List<Integer> remote,
            String notification) {}

    final List<String> sent = new ArrayList<>();
    final List<Read> reads = new ArrayList<>();
    final Map<Long, Descriptors> lists = new HashMap<>();
    final List<String> peers = new ArrayList<>();
    boolean refusePrepare;
    boolean refuseSend;
    private long handles;

    private static List<Integer> list(int[] places, int count) {
        return Arrays.stream(places, 0, count).boxed().toList();
    }

    @Override
    public String name() {
        return "fake";
    }

    @Override
    public void register(List<KvRegion> regions) {}

    @Override
    public void deregister(List<KvRegion> regions) {}

    @Override
    public byte[] metadata() {
        return new byte[0];
    }

    @Override
    public String connect(byte[] metadata) {
        final String peer = "peer-" + metadata.length + "-" + handles++;
        peers.add(peer);
        return peer;
    }

    @Override
    public void disconnect(String peer) {
        peers.remove(peer);
    }

    @Override
    public long prepare(String peer, Descriptors pieces) {
        if (refusePrepare) {
            throw new KvTransportException(KvTransportException.Kind.INVALID, "told so");
        }
        lists.put(++handles, pieces);
        return handles;
    }

    @Override
    public void releaseList(long list) {
        lists.remove(list);
    }

    @Override
    public long request(
            Operation operation,
            long localList,
            int[] localPlaces,
            long remoteList,
            int[] remotePlaces,
            int count,
            byte[] notification) {
        if (operation != Operation.READ) {
            throw new AssertionError("blocks are pulled, not pushed");
        }
        reads.add(
                new Read(
                        localList,
                        list(localPlaces, count),
                        remoteList,
                        list(remotePlaces, count),
                        notification == null
                                ? null
                                : new String(notification, StandardCharsets.UTF_8)));
        return ++handles;
    }

    @Override
    public Progress post(long request) {
        return Progress.DONE;
    }

    @Override
    public Progress status(long request) {
        return Progress.DONE;
    }

    @Override
    public String failure(long request) {
        return "";
    }

    @Override
    public boolean release(long request) {
        return true;
    }

    @Override
    public boolean telemetry(long request, TransferTelemetry out) {
        return false;
    }

    @Override
    public void send(String peer, byte[] message) {
        if (refuseSend) {
            throw new KvTransportException(KvTransportException.Kind.PEER_LOST, "told so");
        }
        if (message.length > 8 << 10) {
            throw new AssertionError("a notification of " + message.length + " bytes");
        }
        sent.add(peer + " " + new String(message, StandardCharsets.UTF_8));
    }

    @Override
    public int notifications(NotificationHandler handler) {
        return 0;
    }

    @Override
    public void close() {}
}
