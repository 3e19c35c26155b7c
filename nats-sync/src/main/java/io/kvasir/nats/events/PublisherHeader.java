package io.kvasir.nats.events;

import io.kvasir.pipeline.source.EventPlane;
import io.nats.client.Message;
import io.nats.client.impl.Headers;

import java.security.SecureRandom;

/**
 * Header of a message in a stream that names its publisher, as envelopes say it: a random number of
 * 53 bits for each life of a publisher, in hexadecimal digits. Events of JetStream have no
 * envelope, so that without it a restarted worker that begins with the same events as before would
 * not be known from its former life.
 */
final class PublisherHeader {
    static final String NAME = "Kvasir-Publisher";

    private static final int HEX = 16;
    private static final int BITS = 53;

    private PublisherHeader() {}

    /** Headers of one life of a publisher. */
    static Headers ofNewLife() {
        final long id = 1 + (new SecureRandom().nextLong() >>> (Long.SIZE - BITS));
        return new Headers().put(NAME, Long.toHexString(id));
    }

    /** The publisher of a message; {@link EventPlane#NO_PUBLISHER} without the header. */
    static long read(Message message) {
        final String text = message.hasHeaders() ? message.getHeaders().getFirst(NAME) : null;
        if (text == null) {
            return EventPlane.NO_PUBLISHER;
        }
        try {
            return Long.parseUnsignedLong(text, HEX);
        } catch (NumberFormatException e) {
            return EventPlane.NO_PUBLISHER; // then the events' numbers decide
        }
    }
}
