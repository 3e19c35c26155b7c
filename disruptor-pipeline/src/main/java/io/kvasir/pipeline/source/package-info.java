/**
 * Event sources: from the messages of one engine to batches that the index can apply.
 *
 * <p>{@link io.kvasir.pipeline.source.EngineStream} is the state machine of one engine rank. Its
 * words: a <em>gap</em> is a missing sequence number; a <em>replay</em> asks the engine for what is
 * missing; a <em>refill</em> loads a slot again after it was emptied; the <em>removal rule</em>
 * says whether one removal ends all copies of a block. What it has decoded it offers to a {@link
 * io.kvasir.pipeline.wire.KvEventSink}; a refused offer is a gap.
 *
 * <p>A stream's messages are an engine's own batches, or single events of an event plane ({@link
 * io.kvasir.pipeline.source.MessageForm}). {@link io.kvasir.pipeline.source.EventPlane} takes the
 * messages of many workers from one subscription and feeds the streams of all of them. Where there
 * are local indexers, {@code PlaneRecovery} has them send what a stream misses: a <em>range</em> of
 * events, which is a replay, or a <em>dump</em> of all blocks.
 *
 * <p>The steps of a stream know each other in one direction, from left to right:
 *
 * <pre>
 *   EngineStream ──► ReplayCoordinator ──► MessageSequencer ──► StreamOutput ──► RefillCoordinator ──► StreamStatus
 *                                                                    └──► CountedSink ◄──┘
 * </pre>
 *
 * <p>Below all of them are the parts that know no step: {@code SequenceTracker}, {@code
 * ReplayRequest}, {@code RetryTimer}, {@code RemovalRuleDetector}, {@code RankFilter}, {@code
 * SourceFreshness}, {@code StreamCounters}. All of a stream is guarded by its lock, except what
 * {@code StreamStatus} publishes.
 *
 * <p>Threads: a stream has one feeding thread, which also runs its timers: a poller thread ({@code
 * kvasir-zmq-N}) for sources over ZMQ, the caller's for direct ones. States and counters are for
 * any thread.
 */
package io.kvasir.pipeline.source;
