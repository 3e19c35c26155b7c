package io.kvasir.core.radix;

import io.kvasir.core.memory.OffHeap;

/**
 * The versions of runs: a reader believes what it has read of a run when the version is the same
 * afterwards. Writer thread only.
 */
final class RunVersions {
    private final OffHeap memory;

    RunVersions(OffHeap memory) {
        this.memory = memory;
    }

    /** Version of a run. */
    long of(int run) {
        return memory.getLong(RunDescriptor.headerOffset(run) + RunDescriptor.VERSION_OFFSET);
    }

    /** The path through a run, or its length, is another one from here on. */
    void structureChanged(int run) {
        change(run, of(run) + (1L << 32));
    }

    /** What a page of a run says is about to become wrong. */
    void pagesChanged(int run) {
        final long version = of(run);
        change(
                run,
                (version & RunDescriptor.STRUCTURE) | ((version + 1) & ~RunDescriptor.STRUCTURE));
    }

    private void change(int run, long version) {
        // released after the words that lead away from a page or a path: a matcher that acquires
        // this version reads those words, and never the page that is given back next
        memory.putLongRelease(
                RunDescriptor.headerOffset(run) + RunDescriptor.VERSION_OFFSET, version);
        // the version is visible before every later store, such as those of the next owner of the
        // page: a matcher that has read one of them finds this version after its load-load fence
        memory.storeStoreFence();
    }
}
