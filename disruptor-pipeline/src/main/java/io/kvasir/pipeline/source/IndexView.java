package io.kvasir.pipeline.source;

/** How far what the index knows of one (worker, rank) can be trusted. Any thread; takes no lock. */
public interface IndexView {
    /** How far the index can be trusted now. */
    IndexState state();

    /**
     * What a block that the index believes in counts, by how far it can be trusted now.
     *
     * @param degradedCredit what it counts while the view is known to be incomplete, 0..1
     * @return 0 (nothing) to 1 (in full)
     */
    double credit(double degradedCredit);
}
