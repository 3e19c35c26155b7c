package io.kvasir.nixl.engine;

import io.kvasir.nixl.memory.Descriptors;

/**
 * A prepared list of own memory: one end of transfers. From {@link TransferEngine#local}.
 *
 * @param list the transport's handle
 * @param descriptors what it consists of
 */
public record LocalBlocks(long list, Descriptors descriptors) {}
