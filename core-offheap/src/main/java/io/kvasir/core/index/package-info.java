/**
 * Which worker holds which prefix block, learned from engine events.
 *
 * <p>{@link io.kvasir.core.index.PrefixIndex} keeps one radix tree of local hashes for all workers
 * ({@link io.kvasir.core.radix}); per worker slot it keeps the <em>held runs</em> (what the slot
 * holds of one array of the tree, with its engine hashes) and the <em>engine-hash index</em>
 * (engine hash to block). Only the tree is read by other threads; held runs and engine hashes
 * belong to the writer, so their tables need no memory order.
 *
 * <p>The index is an entrance to two operations, {@code StoreOperation} and {@code
 * RemoveOperation}, each with the state of the event that it applies; {@code IndexCapacity} says
 * what fits and evicts, {@code HolderConsistency} keeps tree and held runs in agreement.
 *
 * <p>Threads: one writer thread changes an index; lookups, gauges and counters are for any thread.
 * Depends on {@code radix}, {@code memory} and {@code hash}.
 */
package io.kvasir.core.index;
