package io.kvasir.pipeline.wire;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Objects;

/**
 * One message of an answer to a {@link RecoveryQuery}. On the wire a map in msgpack, see
 * docs/spec/recovery.md.
 *
 * @param kind what it is
 * @param publisherId the publisher's own, random number, the one of its envelopes
 * @param workerId whose events, 64 unsigned bits
 * @param dpRank the worker's data-parallel rank
 * @param lastEventId number of the worker's last event when the answer was made; a dump is exact
 *     after it
 * @param lostEventId highest number since the last clear under which there was no event, because
 *     the publisher itself has missed something; 0 for none
 * @param part number of this message among those of the answer, from 0
 * @param parts messages of the answer
 * @param error what is wrong, for {@link Kind#ERROR}; else empty
 * @param payload list of router events, as in an envelope; empty where there are none
 */
@SuppressWarnings("ArrayRecordComponent") // never compared
public record RecoveryAnswer(
        Kind kind,
        long publisherId,
        long workerId,
        int dpRank,
        long lastEventId,
        long lostEventId,
        int part,
        int parts,
        String error,
        byte[] payload) {
    /** What an answer is. */
    public enum Kind {
        /** The events that were asked for, up to the last one. */
        EVENTS("events"),
        /** All blocks that the worker holds, as stores, and removals of holes between them. */
        DUMP("dump"),
        /** There are no events as late as that yet. */
        TOO_NEW("too_new"),
        /** Nothing; it says why. */
        ERROR("error");

        private final String word;

        Kind(String word) {
            this.word = word;
        }
    }

    /** More bytes than all but the payload and the error take. */
    public static final int HEAD_BYTES = 256;

    private static final byte[] NOTHING = {};
    private static final int MOST_ERROR_CHARS = 1_024;

    /** Checks the values. */
    public RecoveryAnswer {
        Objects.requireNonNull(kind, "kind");
        Objects.requireNonNull(error, "error");
        Objects.requireNonNull(payload, "payload");
        if (part < 0 || part >= parts) {
            throw new IllegalArgumentException("part " + part + " of " + parts);
        }
    }

    /** The answer as a message. */
    public byte[] toBytes() {
        final MsgpackWriter out = new MsgpackWriter(HEAD_BYTES + payload.length).map(10);
        out.text(RouterEventNames.KIND).text(EventFields.ascii(kind.word));
        out.text(RouterEventNames.PUBLISHER_ID).unsigned(publisherId);
        out.text(RouterEventNames.WORKER_ID).unsigned(workerId);
        out.text(RouterEventNames.DP_RANK).unsigned(dpRank);
        out.text(RouterEventNames.LAST_EVENT_ID).unsigned(lastEventId);
        out.text(RouterEventNames.LOST_EVENT_ID).unsigned(lostEventId);
        out.text(RouterEventNames.PART).unsigned(part);
        out.text(RouterEventNames.PARTS).unsigned(parts);
        out.text(RouterEventNames.ERROR).text(error.getBytes(StandardCharsets.UTF_8));
        return out.text(RouterEventNames.PAYLOAD).binary(payload).toArray();
    }

    /**
     * Reads a message; unknown keys are ignored.
     *
     * @param message all of it
     * @return the answer; null if it is none
     */
    public static RecoveryAnswer read(byte[] message) {
        final Fields fields = new Fields();
        final MsgpackReader in = new MsgpackReader().wrap(message, 0, message.length);
        for (long pairs = in.openMap(); in.hasMore(pairs); pairs--) {
            if (in.readKey()) {
                fields.read(in, message);
            } else {
                in.skip();
            }
        }
        return in.ok() ? fields.answer() : null;
    }

    /** What was read so far. */
    private static final class Fields {
        private Kind kind;
        private long publisherId;
        private long workerId;
        private long dpRank = -1;
        private long lastEventId = -1;
        private long lostEventId;
        private long part = -1;
        private long parts = -1;
        private String error = "";
        private byte[] payload = NOTHING;

        /** Reads the value of the key that the reader is at. */
        private void read(MsgpackReader in, byte[] message) {
            if (in.dataEquals(RouterEventNames.KIND)) {
                kind = kind(in);
            } else if (in.dataEquals(RouterEventNames.PUBLISHER_ID)) {
                publisherId = in.readLong();
            } else if (in.dataEquals(RouterEventNames.WORKER_ID)) {
                workerId = in.readLong();
            } else if (in.dataEquals(RouterEventNames.DP_RANK)) {
                dpRank = in.readLong();
            } else if (in.dataEquals(RouterEventNames.LAST_EVENT_ID)) {
                lastEventId = in.readLong();
            } else if (in.dataEquals(RouterEventNames.LOST_EVENT_ID)) {
                lostEventId = in.readLong();
            } else if (in.dataEquals(RouterEventNames.PART)) {
                part = in.readLong();
            } else if (in.dataEquals(RouterEventNames.PARTS)) {
                parts = in.readLong();
            } else if (in.dataEquals(RouterEventNames.ERROR)) {
                in.readData();
                error = in.dataText();
            } else if (in.dataEquals(RouterEventNames.PAYLOAD)) {
                in.readData();
                final int from = in.dataOffset();
                payload = Arrays.copyOfRange(message, from, from + in.dataLength());
            } else {
                in.skip();
            }
        }

        private static Kind kind(MsgpackReader in) {
            in.readData();
            final String word = in.dataText();
            for (Kind kind : Kind.values()) {
                if (word.equals(kind.word)) {
                    return kind;
                }
            }
            return null;
        }

        private RecoveryAnswer answer() {
            final boolean good =
                    kind != null
                            && dpRank >= 0
                            && dpRank <= Integer.MAX_VALUE
                            && lastEventId >= 0
                            && lostEventId >= 0
                            && part >= 0
                            && part < parts
                            && parts <= Integer.MAX_VALUE;
            return good
                    ? new RecoveryAnswer(
                            kind,
                            publisherId,
                            workerId,
                            (int) dpRank,
                            lastEventId,
                            lostEventId,
                            (int) part,
                            (int) parts,
                            error.length() > MOST_ERROR_CHARS
                                    ? error.substring(0, MOST_ERROR_CHARS)
                                    : error,
                            payload)
                    : null;
        }
    }
}
