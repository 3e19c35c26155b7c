package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Which memory a transfer is between: the initiator's first, the target's second. */
enum TransferKind {
    VRAM_VRAM(NixlMemory.VRAM, NixlMemory.VRAM),
    VRAM_DRAM(NixlMemory.VRAM, NixlMemory.DRAM),
    DRAM_VRAM(NixlMemory.DRAM, NixlMemory.VRAM),
    /** Needs no GPU: what the machine's host memory does. */
    DRAM_DRAM(NixlMemory.DRAM, NixlMemory.DRAM);

    private final NixlMemory local;
    private final NixlMemory remote;

    TransferKind(NixlMemory local, NixlMemory remote) {
        this.local = local;
        this.remote = remote;
    }

    NixlMemory local() {
        return local;
    }

    NixlMemory remote() {
        return remote;
    }

    boolean needsGpu() {
        return this != DRAM_DRAM;
    }

    String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    /**
     * Reads a list such as {@code vram-vram,vram-dram}.
     *
     * @throws IllegalArgumentException for a name that is no kind, or one that comes twice
     */
    static List<TransferKind> parse(String list) {
        final List<TransferKind> kinds = new ArrayList<>();
        for (String name : list.split(",", -1)) {
            final TransferKind kind = of(name);
            if (kinds.contains(kind)) {
                throw new IllegalArgumentException("--kinds names " + name + " twice");
            }
            kinds.add(kind);
        }
        return List.copyOf(kinds);
    }

    private static TransferKind of(String name) {
        for (TransferKind kind : values()) {
            if (kind.label().equals(name)) {
                return kind;
            }
        }
        throw new IllegalArgumentException(
                "--kinds knows vram-vram, vram-dram, dram-vram and dram-dram, not " + name);
    }
}
