package io.kvasir.core.memory;

/**
 * An area of a {@link RecoverableMemory}: what its one writer thread stores over is written to the
 * {@link UndoLog} first.
 */
final class LoggedMemory extends OffHeap {
    private final UndoLog log;
    private final long areaOffset;

    /**
     * @param whole memory that the area lies in
     * @param areaOffset where; a multiple of 8
     */
    LoggedMemory(OffHeap whole, long areaOffset, long length, UndoLog log) {
        super(whole, areaOffset, length);
        this.log = log;
        this.areaOffset = areaOffset;
    }

    @Override
    void remember(long offset, long length) {
        log.remember(this, areaOffset, offset, length);
    }
}
