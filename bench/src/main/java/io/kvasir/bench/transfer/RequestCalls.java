package io.kvasir.bench.transfer;

import io.kvasir.nixl.transfer.Descriptors;
import io.kvasir.nixl.transfer.KvTransport;
import io.kvasir.nixl.transfer.KvTransport.Operation;
import io.kvasir.nixl.transfer.KvTransport.Progress;
import io.kvasir.panama.NixlAgent;
import io.kvasir.panama.NixlAgentConfig;
import io.kvasir.panama.NixlAvailability.Available;
import io.kvasir.panama.NixlMemory;
import io.kvasir.panama.NixlNotificationHandler;
import io.kvasir.panama.NixlStatus;
import io.kvasir.panama.NixlTransfers;

import java.lang.foreign.Arena;
import java.util.Arrays;
import java.util.Map;
import java.util.UUID;

/** The calls of one request, through one of the layers. One thread. */
interface RequestCalls {
    long preparePeer();

    void releaseList(long list);

    long make(int[] places, int count, byte[] notification);

    /** Whether it is running after the post. */
    boolean post(long request);

    boolean isRunning(long request);

    void release(long request);

    int notifications();

    /** The binding alone: NIXL's own calls, with a status for an answer. */
    final class OfTransfers implements RequestCalls {
        private final NixlTransfers transfers;
        private final NixlNotificationHandler ignore = (sender, message) -> {};
        private final String peer;
        private final long[] peerAddresses;
        private final long[] lengths;
        private final int[] devices;
        private final long own;
        private final long remote;

        OfTransfers(Available nixl, PeerMemory memory, int pieces, long pieceBytes) {
            final NixlAgent agent =
                    nixl.library()
                            .createAgent("kvasir-" + UUID.randomUUID(), NixlAgentConfig.DEFAULT);
            agent.createBackend(TransferEnd.backend(nixl), Map.of());
            transfers = agent.transfers();
            final long bytes = pieces * pieceBytes;
            final long base = Arena.global().allocate(bytes, Long.BYTES).address();
            transfers.register(
                    NixlMemory.DRAM, new long[] {base}, new long[] {bytes}, new int[] {0});
            peer = transfers.load(memory.metadata());
            lengths = new long[pieces];
            Arrays.fill(lengths, pieceBytes);
            devices = new int[pieces];
            peerAddresses = addresses(memory.base(), pieces, pieceBytes);
            own =
                    transfers.prepare(
                            "",
                            NixlMemory.DRAM,
                            addresses(base, pieces, pieceBytes),
                            lengths,
                            devices);
            remote = preparePeer();
        }

        private static long[] addresses(long base, int pieces, long pieceBytes) {
            final long[] addresses = new long[pieces];
            Arrays.setAll(addresses, i -> base + i * pieceBytes);
            return addresses;
        }

        @Override
        public long preparePeer() {
            return transfers.prepare(peer, NixlMemory.DRAM, peerAddresses, lengths, devices);
        }

        @Override
        public void releaseList(long list) {
            transfers.releaseList(list);
        }

        @Override
        public long make(int[] places, int count, byte[] notification) {
            return transfers.make(false, own, places, remote, places, count, notification);
        }

        @Override
        public boolean post(long request) {
            return isRunning(transfers.post(request));
        }

        @Override
        public boolean isRunning(long request) {
            return isRunning(transfers.status(request));
        }

        private static boolean isRunning(int status) {
            if (status < 0) {
                throw new IllegalStateException("a request failed: " + status);
            }
            return status == NixlStatus.IN_PROGRESS.code();
        }

        @Override
        public void release(long request) {
            final int status = transfers.release(request);
            if (status != 0) {
                throw new IllegalStateException("a request was not released: " + status);
            }
        }

        @Override
        public int notifications() {
            return transfers.notifications(ignore);
        }
    }

    /** The transport: the same with every handle, place and length checked. */
    final class OfTransport implements RequestCalls {
        private final KvTransport transport;
        private final KvTransport.NotificationHandler ignore = (sender, message) -> {};
        private final String peer;
        private final Descriptors peerPieces;
        private final long own;
        private final long remote;

        OfTransport(TransferEnd end, PeerMemory memory, int pieces, long pieceBytes) {
            transport = end.transport();
            peer = transport.connect(memory.metadata());
            own =
                    transport.prepare(
                            null,
                            Descriptors.ofBlocks(
                                    TransferEnd.blocks(end.pool().base(), pieceBytes, pieces)));
            peerPieces =
                    Descriptors.ofBlocks(TransferEnd.blocks(memory.base(), pieceBytes, pieces));
            remote = preparePeer();
        }

        /** Gives its two lists back. */
        void close() {
            transport.releaseList(own);
            transport.releaseList(remote);
        }

        @Override
        public long preparePeer() {
            return transport.prepare(peer, peerPieces);
        }

        @Override
        public void releaseList(long list) {
            transport.releaseList(list);
        }

        @Override
        public long make(int[] places, int count, byte[] notification) {
            return transport.request(
                    Operation.READ, own, places, remote, places, count, notification);
        }

        @Override
        public boolean post(long request) {
            return isRunning(request, transport.post(request));
        }

        @Override
        public boolean isRunning(long request) {
            return isRunning(request, transport.status(request));
        }

        private boolean isRunning(long request, Progress progress) {
            if (progress == Progress.FAILED) {
                throw new IllegalStateException(transport.failure(request));
            }
            return progress == Progress.RUNNING;
        }

        @Override
        public void release(long request) {
            if (!transport.release(request)) {
                throw new IllegalStateException("a request was not released");
            }
        }

        @Override
        public int notifications() {
            return transport.notifications(ignore);
        }
    }
}
