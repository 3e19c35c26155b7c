package io.kvasir.nats.replica;

import java.util.Locale;

/** In which form messages about bookings are sent; both are read. */
public enum WireForm {
    /** Msgpack in an envelope, as since version 0.9 of the format. */
    MSGPACK,
    /** JSON, as up to version 0.8. */
    JSON;

    /** As it is written in settings. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT);
    }
}
