/**
 * The event ring and its writer: batches of all sources into the prefix index.
 *
 * <p>An <em>index command</em> is one record of the ring: a batch of a source, or a wake-up for the
 * <em>mailbox</em>, in which retirements of slots wait that must not be refused by a full ring. The
 * <em>slot generation</em> of a command fences what was published for an earlier tenant.
 *
 * <p>Threads: {@code kvasir-index-writer} is the only one that writes the index; sources publish
 * from any thread.
 */
package io.kvasir.pipeline.events;
