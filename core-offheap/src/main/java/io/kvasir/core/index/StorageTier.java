package io.kvasir.core.index;

/**
 * Where an engine keeps a block, the fastest first. A device's, host's or disk's block is one
 * worker's own; what lies in shared storage is held by no worker, and any can load it.
 */
public enum StorageTier {
    /** Memory of the accelerator: where engines compute. */
    DEVICE(0),
    /** Memory of the worker's host. */
    HOST(1),
    /** A disk of the worker. */
    DISK(2),
    /** Storage that all workers of the model load from. */
    SHARED(3);

    private final int number;

    StorageTier(int number) {
        this.number = number;
    }

    /** A number of two bits by which it is known in words of memory; the fastest has the least. */
    public int number() {
        return number;
    }

    /**
     * The tier of a number.
     *
     * @throws IllegalArgumentException if there is none
     */
    public static StorageTier of(int number) {
        return switch (number) {
            case 0 -> DEVICE;
            case 1 -> HOST;
            case 2 -> DISK;
            case 3 -> SHARED;
            default -> throw new IllegalArgumentException("not a tier: " + number);
        };
    }
}
