package io.kvasir.panama.nixl;

/** Kinds of memory that NIXL moves. */
public enum NixlMemory {
    /** Host memory; the device number is 0. */
    DRAM(0),
    /** GPU memory; the device number is the GPU's ordinal. */
    VRAM(1),
    /** A block volume. */
    BLOCK(2),
    /** An object store. */
    OBJECT(3),
    /** A file; the device number is its descriptor, addresses are offsets. */
    FILE(4),
    /** What the library itself cannot name. */
    UNKNOWN(5);

    private final int code;

    NixlMemory(int code) {
        this.code = code;
    }

    /** The number that stands for it in C. */
    int code() {
        return code;
    }

    static NixlMemory of(int code) {
        for (NixlMemory memory : values()) {
            if (memory.code == code) {
                return memory;
            }
        }
        return UNKNOWN;
    }
}
