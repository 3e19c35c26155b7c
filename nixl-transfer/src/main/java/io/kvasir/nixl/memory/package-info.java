/**
 * The layout of a pool of KV blocks in memory, of the host or of a GPU: regions ({@link
 * io.kvasir.nixl.memory.KvRegion}), the layout that they follow ({@link
 * io.kvasir.nixl.memory.KvLayout}), and lists of descriptors that transfers name by index ({@link
 * io.kvasir.nixl.memory.Descriptors}).
 *
 * <p>Everything is immutable but the bytes of a pool; any thread. Knows panama-bindings only: what
 * moves blocks is above.
 */
package io.kvasir.nixl.memory;
