package io.kvasir.gateway.trace;

import java.nio.charset.StandardCharsets;

/**
 * What a collector says of spans that it has taken in part: {@code ExportTraceServiceResponse} of
 * OTLP, whose first field is an {@code ExportTracePartialSuccess}.
 *
 * @param rejectedSpans how many it has not taken; 0 for a warning alone
 * @param message why, as the collector words it, no more than 1,024 bytes of it; may be empty
 * @see <a href="https://opentelemetry.io/docs/specs/otlp/#partial-success">OTLP, partial
 *     success</a>
 */
record PartialSuccess(long rejectedSpans, String message) {
    /** All spans are taken, and nothing is said. */
    static final PartialSuccess WHOLE = new PartialSuccess(0, "");

    private static final int PARTIAL_SUCCESS = 1;
    private static final int REJECTED_SPANS = 1;
    private static final int ERROR_MESSAGE = 2;
    private static final int MOST_OF_MESSAGE = 1024; // bytes; it is logged

    /**
     * Reads an answer of protobuf.
     *
     * @param body not changed; what is no such message says nothing
     */
    static PartialSuccess read(byte[] body) {
        try {
            PartialSuccess read = WHOLE;
            final Fields fields = new Fields(body, 0, body.length);
            while (fields.next()) {
                if (fields.number == PARTIAL_SUCCESS && fields.length >= 0) {
                    read = readPartial(new Fields(body, fields.start, fields.end()));
                }
            }
            return read;
        } catch (IndexOutOfBoundsException e) {
            return WHOLE;
        }
    }

    private static PartialSuccess readPartial(Fields fields) {
        long rejected = 0;
        String message = "";
        while (fields.next()) {
            if (fields.number == REJECTED_SPANS && fields.length < 0) {
                rejected = Math.max(0, fields.value);
            } else if (fields.number == ERROR_MESSAGE && fields.length >= 0) {
                message =
                        new String(
                                fields.bytes,
                                fields.start,
                                Math.min(fields.length, MOST_OF_MESSAGE),
                                StandardCharsets.UTF_8);
            }
        }
        return new PartialSuccess(rejected, message);
    }

    /** The fields of a message of protobuf, one after the other. */
    private static final class Fields {
        private static final int VARINT = 0;
        private static final int FIXED_64 = 1;
        private static final int BYTES = 2;
        private static final int FIXED_32 = 5;
        private static final int TYPE_BITS = 3;
        private static final int VARINT_BITS = 7;

        private final byte[] bytes;
        private final int limit;
        private int at;
        private long number;
        private long value; // of a number
        private int start; // of bytes
        private int length; // likewise; negative of a number

        Fields(byte[] bytes, int from, int limit) {
            this.bytes = bytes;
            this.at = from;
            this.limit = limit;
        }

        /** Whether there is a further one; throws IndexOutOfBounds where it is cut off. */
        boolean next() {
            if (at == limit) {
                return false;
            }
            final long tag = varint();
            number = tag >>> TYPE_BITS;
            length = -1;
            switch ((int) tag & ((1 << TYPE_BITS) - 1)) {
                case VARINT -> value = varint();
                case FIXED_64 -> skip(Long.BYTES);
                case BYTES -> {
                    final long of = varint();
                    start = at;
                    skip(of);
                    length = (int) of;
                }
                case FIXED_32 -> skip(Integer.BYTES);
                default -> throw new IndexOutOfBoundsException("no type of a field: " + tag);
            }
            return true;
        }

        private int end() {
            return start + length;
        }

        private void skip(long count) {
            if (count < 0 || count > limit - at) {
                throw new IndexOutOfBoundsException("a field of " + count + " bytes at " + at);
            }
            at += (int) count;
        }

        private long varint() {
            long read = 0;
            for (int shift = 0; shift < Long.SIZE; shift += VARINT_BITS) {
                final byte next = bytes[at];
                skip(1);
                read |= (long) (next & ((1 << VARINT_BITS) - 1)) << shift;
                if (next >= 0) {
                    return read;
                }
            }
            throw new IndexOutOfBoundsException("a number of too many bytes at " + at);
        }
    }
}
