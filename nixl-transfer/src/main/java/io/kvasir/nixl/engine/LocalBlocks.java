package io.kvasir.nixl.engine;

import io.kvasir.nixl.memory.Descriptors;

/**
 * A prepared list of own memory: one end of transfers. From {@link TransferEngine#local}.
 *
 * @param engine whose transport has the list; another one's has other lists of the same handle
 * @param list the transport's handle
 * @param descriptors what it consists of
 */
public record LocalBlocks(TransferEngine engine, long list, Descriptors descriptors) {}
