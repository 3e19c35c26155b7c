package io.kvasir.nats.events;

import java.io.IOException;
import java.time.Duration;
import java.time.ZonedDateTime;

/** The stream of a component's events as one thing: how long it is, and what is purged of it. */
interface SharedStream extends AutoCloseable {
    /**
     * A stream at one moment.
     *
     * @param made when it was made
     * @param first number of its oldest message; one more than the last where it has none
     * @param last number of its newest message, purged or not
     * @param messages that it has
     * @param mostAge how long it keeps a message; zero for ever
     * @param timeOrNull the server's clock; null where the server does not say it
     */
    record State(
            ZonedDateTime made,
            long first,
            long last,
            long messages,
            Duration mostAge,
            ZonedDateTime timeOrNull) {}

    /** Its name. */
    String name();

    /** What it is now; it is made if it is not there. */
    State state() throws IOException;

    /**
     * When a message was published, by the server's clock.
     *
     * @param from number of the message; the next one counts where it is not there any more
     * @return null if there is none
     */
    ZonedDateTime publishedOrNull(long from) throws IOException;

    /**
     * Purges the stream, but for what a consumer has not acknowledged yet.
     *
     * @param made when the stream was made; another one is left as it is
     * @param upTo number of the last message that is not needed any more
     */
    void purge(ZonedDateTime made, long upTo) throws IOException;

    /** Purges all of the stream. */
    void purge() throws IOException;

    @Override
    void close();
}
