package io.kvasir.bench.transfer;

import io.kvasir.nixl.probe.TransferEnd;

import java.util.HexFormat;

/** Memory that requests go to: another process's, or that of a second end of this process. */
final class PeerMemory {
    private final long base;
    private final byte[] metadata;

    PeerMemory(long base, byte[] metadata) {
        this.base = base;
        this.metadata = metadata;
    }

    /** Address of its first byte, where it is. */
    long base() {
        return base;
    }

    /** What connects to it; not copied. */
    byte[] metadata() {
        return metadata;
    }

    /**
     * Of a program's arguments.
     *
     * @param args ends with base and metadata, or does not
     * @param from where they would stand
     * @param bytes of memory of an end that is opened here if they do not; it lives as long as the
     *     process
     */
    static PeerMemory of(String[] args, int from, long bytes) {
        if (args.length > from) {
            return new PeerMemory(
                    Long.parseLong(args[from]), HexFormat.of().parseHex(args[from + 1]));
        }
        final TransferEnd other = TransferEnd.open(TransferEnd.Kind.NIXL, bytes);
        return new PeerMemory(other.pool().base(), other.transport().metadata());
    }
}
