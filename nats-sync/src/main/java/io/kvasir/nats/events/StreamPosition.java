package io.kvasir.nats.events;

import io.kvasir.pipeline.source.PlanePosition;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;

/**
 * A message of a stream of JetStream.
 *
 * @param made when the stream was made: numbers of one that is made anew mean other messages
 * @param sequence number of the message; 0 for before the first
 */
public record StreamPosition(ZonedDateTime made, long sequence) {
    private static final long NS = 1_000_000_000L;

    /**
     * The same as an event plane has it.
     *
     * @param position whose store is {@link #store} of a stream
     */
    static StreamPosition of(PlanePosition position) {
        return new StreamPosition(made(position.store()), position.upTo());
    }

    /** When a stream was made, in ns since 1970. */
    static long store(ZonedDateTime made) {
        final Instant at = made.toInstant();
        return at.getEpochSecond() * NS + at.getNano();
    }

    /** When a stream was made. */
    static ZonedDateTime made(long store) {
        return Instant.ofEpochSecond(store / NS, store % NS).atZone(ZoneOffset.UTC);
    }

    /** Whether it is of a stream that was made then. */
    boolean isOf(ZonedDateTime madeThen) {
        return store(made) == store(madeThen);
    }

    /** The same for an event plane. */
    PlanePosition ofPlane() {
        return new PlanePosition(store(made), sequence);
    }
}
