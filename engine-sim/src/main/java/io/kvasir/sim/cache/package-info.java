/** Names of blocks and the pool that holds, finds and evicts them. One thread at a time. */
package io.kvasir.sim.cache;
