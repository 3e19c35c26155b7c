package io.kvasir.pipeline.wire;

/**
 * View of one message of an event plane: an envelope around a list of router events in msgpack, or
 * a single router event in JSON. Tells whose each event is without decoding it, so that the bytes
 * of each can be passed to the stream of its worker:
 *
 * <pre>{@code
 * if (message.wrap(bytes, 0, bytes.length)) {
 *     while (message.next()) {
 *         if (message.isAddressed()) { ... message.workerId(), message.eventOffset() ... }
 *     }
 * }
 * }</pre>
 *
 * <p>Reads without allocating, never throws on bad input. One instance per thread.
 */
public final class RouterMessage {
    private final MsgpackReader envelope = new MsgpackReader();
    private final MsgpackReader events = new MsgpackReader();
    private final MsgpackReader event = new MsgpackReader();
    private final JsonReader json = new JsonReader();
    private final RouterEventFields fields = new RouterEventFields();
    private byte[] bytes;
    private long left;
    private boolean truncated;
    private boolean enveloped;
    private long publisherId;
    private long sequence;
    private int jsonOffset;
    private int jsonLength; // 0 in an envelope
    private int eventOffset;
    private int eventLength;
    private boolean addressed;
    private long workerId;
    private int dpRank;
    private long eventId;

    /** Creates a view of nothing. */
    public RouterMessage() {}

    /**
     * Points the view at a message.
     *
     * @param message holds it; kept until the next call, not copied
     * @param offset its first byte
     * @param length its bytes
     * @return false if it is no message of an event plane
     * @throws IndexOutOfBoundsException if the range does not lie in {@code message}
     */
    public boolean wrap(byte[] message, int offset, int length) {
        bytes = message;
        truncated = false;
        enveloped = false;
        jsonLength = 0;
        left = 0;
        envelope.wrap(message, offset, length);
        if (RouterEventDecoder.isJson(message, offset, length)) {
            jsonOffset = offset;
            jsonLength = length;
            left = 1;
            return true;
        }
        return open();
    }

    private boolean open() {
        boolean publisher = false;
        boolean numbered = false;
        int payload = -1;
        int payloadLength = 0;
        for (long pairs = envelope.openMap(); envelope.hasMore(pairs); pairs--) {
            if (!envelope.readKey()) {
                envelope.skip();
            } else if (envelope.dataEquals(RouterEventNames.PUBLISHER_ID)) {
                publisherId = envelope.readLong();
                publisher = true;
            } else if (envelope.dataEquals(RouterEventNames.SEQUENCE)) {
                sequence = envelope.readLong();
                numbered = true;
            } else if (envelope.dataEquals(RouterEventNames.PAYLOAD)) {
                envelope.readData();
                payload = envelope.dataOffset();
                payloadLength = envelope.dataLength();
            } else {
                envelope.skip();
            }
        }
        enveloped = publisher && numbered;
        if (!envelope.ok() || !enveloped || payload < 0) {
            return false;
        }
        return openEvents(payload, payloadLength);
    }

    /**
     * Points the view at the payload of an envelope, which names no publisher then.
     *
     * @param payload holds it; kept until the next call, not copied
     * @param offset its first byte
     * @param length its bytes
     * @return false if it is no list of events
     * @throws IndexOutOfBoundsException if the range does not lie in {@code payload}
     */
    public boolean wrapPayload(byte[] payload, int offset, int length) {
        bytes = payload;
        truncated = false;
        enveloped = false;
        jsonLength = 0;
        left = 0;
        return openEvents(offset, length);
    }

    private boolean openEvents(int offset, int length) {
        events.wrap(bytes, offset, length);
        if (events.peek() == MsgpackReader.Kind.MAP) {
            left = 1;
            return true;
        }
        left = events.openArray();
        return events.ok();
    }

    /** Whether the message names its publisher and has a number of it. */
    public boolean isEnveloped() {
        return enveloped;
    }

    /** The publisher's own, random number; only if {@link #isEnveloped}. */
    public long publisherId() {
        return publisherId;
    }

    /** How many messages the publisher has sent before; only if {@link #isEnveloped}. */
    public long sequence() {
        return sequence;
    }

    /** Goes to the next event; false if there is none, or the message is cut off here. */
    public boolean next() {
        if (left <= 0) {
            return false;
        }
        left--;
        return jsonLength > 0 ? nextInJson() : nextInPayload();
    }

    private boolean nextInJson() {
        eventOffset = jsonOffset;
        eventLength = jsonLength;
        address(json.wrap(bytes, jsonOffset, jsonLength));
        return true;
    }

    private boolean nextInPayload() {
        eventOffset = events.position();
        if (!events.skip()) {
            truncated = true;
            left = 0;
            return false;
        }
        eventLength = events.position() - eventOffset;
        address(event.wrap(bytes, eventOffset, eventLength));
        return true;
    }

    private void address(DocumentReader in) {
        fields.locate(in);
        final boolean whole = in.ok() && in.peek() == MsgpackReader.Kind.END;
        final int workerAt = fields.at(RouterEventFields.WORKER_ID);
        final int idAt = fields.at(RouterEventFields.EVENT_ID);
        addressed = whole && workerAt >= 0 && idAt >= 0;
        if (addressed) {
            in.position(workerAt);
            workerId = in.readLong();
            final boolean named = in.ok();
            in.position(idAt);
            eventId = in.readLong();
            final boolean numbered = in.ok() && eventId >= 0;
            final long rank = RouterEventDecoder.rank(in, fields);
            dpRank = (int) rank;
            addressed = named && numbered && rank >= 0;
        }
    }

    /** Whether the message ended in the middle of an event, or sooner than it said. */
    public boolean isTruncated() {
        return truncated;
    }

    /** First byte of the event in the message's array. */
    public int eventOffset() {
        return eventOffset;
    }

    /** Bytes of the event. */
    public int eventLength() {
        return eventLength;
    }

    /** Whether the event says whose it is and what its number is. */
    public boolean isAddressed() {
        return addressed;
    }

    /** The worker, as 64 unsigned bits; only if {@link #isAddressed}. */
    public long workerId() {
        return workerId;
    }

    /** The worker's data-parallel rank, 0 if the event names none; only if {@link #isAddressed}. */
    public int dpRank() {
        return dpRank;
    }

    /** Number of the event among those of its worker and rank; only if {@link #isAddressed}. */
    public long eventId() {
        return eventId;
    }
}
