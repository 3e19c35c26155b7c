/**
 * The bytes of a snapshot, {@code docs/spec/snapshot.md}: what worker slots hold, in checksummed
 * chunks that are written one after the other and read with whatever became of them.
 *
 * <p>A <em>record</em> is some blocks of a path or a number of copies; a <em>chunk</em> holds
 * records of one worker. Knows no ring and no store.
 */
package io.kvasir.pipeline.snapshot;
