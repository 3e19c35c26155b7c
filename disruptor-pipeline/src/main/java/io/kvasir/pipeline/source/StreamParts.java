package io.kvasir.pipeline.source;

import io.kvasir.pipeline.wire.MessageDecoder;

import java.util.function.LongSupplier;

/**
 * The parts of one stream that several of its steps work with. Each says itself which threads may
 * use it; what does not is guarded by the stream's lock.
 */
final class StreamParts {
    final SourceConfig config;
    final LongSupplier nanoClock;
    final MessageDecoder decoder;
    final RankFilter rank;
    final RemovalRuleDetector removals;
    final SourceFreshness freshness;
    final StreamCounters counters = new StreamCounters();
    final SequenceTracker tracker;
    final ReplayRequest replay = new ReplayRequest();
    final RetryTimer retry = new RetryTimer();

    /** A message that waits for the one before it. */
    final HeldMessage early = new HeldMessage();

    StreamParts(SourceConfig config, LongSupplier nanoClock) {
        this.config = config;
        this.nanoClock = nanoClock;
        this.decoder = config.form().newDecoder(config);
        this.tracker = new SequenceTracker(config.form().firstNumber());
        this.rank = new RankFilter(config, decoder);
        this.removals = new RemovalRuleDetector(config.removals());
        this.freshness = new SourceFreshness(config.freshness(), nanoClock);
    }
}
