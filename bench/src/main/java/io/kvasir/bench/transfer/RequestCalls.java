package io.kvasir.bench.transfer;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.probe.TransferEnd;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.Operation;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.panama.nixl.NixlAgent;
import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlMemory;
import io.kvasir.panama.nixl.NixlNotificationHandler;
import io.kvasir.panama.nixl.NixlStatus;
import io.kvasir.panama.nixl.NixlTransfers;

import java.util.Arrays;
import java.util.Map;
import java.util.UUID;

/** The calls of one request, through one of the layers. One thread. */
interface RequestCalls {
    /** Prepares what requests are made of, in place of the lists before; the places stay. */
    void lists(int pieces, long pieceBytes, int[] places);

    /** One more list of the peer's pieces. */
    long preparePeer();

    void releaseList(long list);

    /** Of the first places. */
    long make(int count, byte[] notification);

    /** Whether it is running after the post. */
    boolean post(long request);

    boolean isRunning(long request);

    void release(long request);

    int notifications();

    /** The binding alone: NIXL's own calls, with a status for an answer. */
    final class OfTransfers implements RequestCalls {
        private final NixlTransfers transfers;
        private final NixlNotificationHandler ignore = (sender, message) -> {};
        private final long ownBase;
        private final PeerMemory memory;
        private final String peer;
        private long[] peerAddresses;
        private long[] lengths;
        private int[] devices;
        private final boolean copying;
        private int[] places;
        private long nativePlaces;
        private long own;
        private long remote;

        /**
         * Opens an agent.
         *
         * @param copying whether places are given as an array, else at an address as C has them
         */
        OfTransfers(Available nixl, long ownBase, PeerMemory memory, long bytes, boolean copying) {
            final NixlAgent agent =
                    nixl.library()
                            .createAgent("kvasir-" + UUID.randomUUID(), NixlAgentConfig.DEFAULT);
            agent.createBackend(TransferEnd.backend(nixl), Map.of());
            transfers = agent.transfers();
            transfers.register(
                    NixlMemory.DRAM, new long[] {ownBase}, new long[] {bytes}, new int[] {0});
            this.ownBase = ownBase;
            this.memory = memory;
            this.copying = copying;
            peer = transfers.load(memory.metadata());
        }

        @Override
        public void lists(int pieces, long pieceBytes, int[] chosen) {
            if (own != 0) {
                transfers.releaseList(own);
                transfers.releaseList(remote);
            }
            places = chosen;
            nativePlaces = Rounds.inNativeMemory(chosen).address();
            lengths = new long[pieces];
            Arrays.fill(lengths, pieceBytes);
            devices = new int[pieces];
            peerAddresses = addresses(memory.base(), pieces, pieceBytes);
            own =
                    transfers.prepare(
                            "",
                            NixlMemory.DRAM,
                            addresses(ownBase, pieces, pieceBytes),
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
        public long make(int count, byte[] notification) {
            return copying
                    ? transfers.make(false, own, places, remote, places, count, notification)
                    : transfers.make(
                            false, own, nativePlaces, remote, nativePlaces, count, notification);
        }

        @Override
        public boolean post(long request) {
            return isRunningStatus(transfers.post(request));
        }

        @Override
        public boolean isRunning(long request) {
            return isRunningStatus(transfers.status(request));
        }

        private static boolean isRunningStatus(int status) {
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
        private final long ownBase;
        private final PeerMemory memory;
        private final String peer;
        private Descriptors peerPieces;
        private int[] places;
        private long own;
        private long remote;

        OfTransport(TransferEnd end, PeerMemory memory) {
            transport = end.transport();
            ownBase = end.pool().base();
            this.memory = memory;
            peer = transport.connect(memory.metadata());
        }

        @Override
        public void lists(int pieces, long pieceBytes, int[] chosen) {
            if (own != 0) {
                transport.releaseList(own);
                transport.releaseList(remote);
            }
            places = chosen;
            own = transport.prepare(null, pieces(ownBase, pieces, pieceBytes));
            peerPieces = pieces(memory.base(), pieces, pieceBytes);
            remote = preparePeer();
        }

        private static Descriptors pieces(long base, int pieces, long pieceBytes) {
            return Descriptors.ofBlocks(TransferEnd.blocks(base, pieceBytes, pieces));
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
        public long make(int count, byte[] notification) {
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
