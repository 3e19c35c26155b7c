/**
 * Moves blocks over one transport: {@link io.kvasir.nixl.engine.TransferEngine} takes transfers
 * from any thread, and its one thread cuts them into requests, posts and polls them and ends them.
 *
 * <p>A <em>transfer</em> copies pairs of blocks in <em>stages</em>, each of which may notify the
 * peer; a <em>link</em> is a peer's memory with what is known of the way there. {@link
 * io.kvasir.nixl.engine.BlockLeases} keeps blocks until the peers that pull them are done.
 *
 * <p>Knows {@code transport} and {@code memory}.
 */
package io.kvasir.nixl.engine;
