package io.kvasir.services.indexer;

/**
 * One data-parallel rank of an instance and its worker slot; another registration is another
 * tenant.
 */
final class Tenant {
    final long instance;
    final int dpRank;
    final int slot;

    Tenant(long instance, int dpRank, int slot) {
        this.instance = instance;
        this.dpRank = dpRank;
        this.slot = slot;
    }
}
