/**
 * Keeps links to peers up: {@link io.kvasir.nixl.link.LinkManager} waits for a peer's record,
 * connects and prepares its memory, and does so again after a loss, with growing pauses.
 *
 * <p>Runs on a thread of its own, but for the short calls that it hands to the transfer engine's.
 *
 * <p>Knows {@code exchange} and {@code engine}.
 */
package io.kvasir.nixl.link;
