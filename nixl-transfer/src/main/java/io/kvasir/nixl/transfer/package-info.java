/**
 * Copies of KV blocks between workers: what a pool of blocks looks like ({@link
 * io.kvasir.nixl.transfer.KvRegion}), and what moves them ({@link
 * io.kvasir.nixl.transfer.KvTransport}: NIXL, or shared memory where there is none).
 */
package io.kvasir.nixl.transfer;
