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
    /** Prepares what requests are made of, in place of the lists before; the indices stay. */
    void lists(int descriptors, long descriptorBytes, int[] indices);

    /** One more list of the peer's descriptors. */
    long preparePeer();

    void releaseList(long list);

    /** Of the first indices. */
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
        private int[] indices;
        private long nativeIndices;
        private long own;
        private long remote;

        /**
         * Opens an agent.
         *
         * @param copying whether indices are given as an array, else at an address as C has them
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
        public void lists(int descriptors, long descriptorBytes, int[] chosen) {
            if (own != 0) {
                transfers.releaseList(own);
                transfers.releaseList(remote);
            }
            indices = chosen;
            nativeIndices = Rounds.inNativeMemory(chosen).address();
            lengths = new long[descriptors];
            Arrays.fill(lengths, descriptorBytes);
            devices = new int[descriptors];
            peerAddresses = addresses(memory.base(), descriptors, descriptorBytes);
            own =
                    transfers.prepare(
                            "",
                            NixlMemory.DRAM,
                            addresses(ownBase, descriptors, descriptorBytes),
                            lengths,
                            devices);
            remote = preparePeer();
        }

        private static long[] addresses(long base, int descriptors, long descriptorBytes) {
            final long[] addresses = new long[descriptors];
            Arrays.setAll(addresses, i -> base + i * descriptorBytes);
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
                    ? transfers.make(false, own, indices, remote, indices, 0, count, notification)
                    : transfers.make(
                            false, own, nativeIndices, remote, nativeIndices, count, notification);
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

    /** The transport: the same with every handle, index and length checked. */
    final class OfTransport implements RequestCalls {
        private final KvTransport transport;
        private final KvTransport.NotificationHandler ignore = (sender, message) -> {};
        private final long ownBase;
        private final PeerMemory memory;
        private final String peer;
        private Descriptors peerDescriptors;
        private int[] indices;
        private long own;
        private long remote;

        OfTransport(TransferEnd end, PeerMemory memory) {
            transport = end.transport();
            ownBase = end.pool().base();
            this.memory = memory;
            peer = transport.connect(memory.metadata());
        }

        @Override
        public void lists(int descriptors, long descriptorBytes, int[] chosen) {
            if (own != 0) {
                transport.releaseList(own);
                transport.releaseList(remote);
            }
            indices = chosen;
            own = transport.prepare(null, descriptors(ownBase, descriptors, descriptorBytes));
            peerDescriptors = descriptors(memory.base(), descriptors, descriptorBytes);
            remote = preparePeer();
        }

        private static Descriptors descriptors(long base, int descriptors, long descriptorBytes) {
            return Descriptors.ofBlocks(TransferEnd.blocks(base, descriptorBytes, descriptors));
        }

        @Override
        public long preparePeer() {
            return transport.prepare(peer, peerDescriptors);
        }

        @Override
        public void releaseList(long list) {
            transport.releaseList(list);
        }

        @Override
        public long make(int count, byte[] notification) {
            return transport.request(
                    Operation.READ, own, indices, remote, indices, count, notification);
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
