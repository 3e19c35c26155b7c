/**
 * The seam under all transfers, {@link io.kvasir.nixl.transport.KvTransport}, with what every
 * implementation refuses alike, and the implementation over NIXL.
 *
 * <p>A <em>list</em> is memory prepared once for a peer, a <em>request</em> is made of two lists,
 * posted, polled and released; both are numbers that are never valid twice ({@link
 * io.kvasir.nixl.transport.Handles}). A transport belongs to one thread at a time, its owner, and
 * never blocks.
 *
 * <p>Knows {@code memory} and panama-bindings.
 */
package io.kvasir.nixl.transport;
