/**
 * Makes op streams: a request trace is played through simulated workers with least-recently-used
 * block caches, and everything that a router would receive and ask is written down with the exact
 * answers.
 *
 * <p>{@link io.kvasir.opstreams.generate.StreamGenerator} is the entry, and {@link
 * io.kvasir.opstreams.generate.MultiTurnStream} for conversations that are made up.
 */
package io.kvasir.opstreams.generate;
