package io.kvasir.pipeline.wire;

/**
 * Finds the data-parallel rank in the event batches of one publisher without decoding their events.
 * One thread.
 *
 * <p>The rank of an array batch follows the events, which have to be skipped: a quarter of the time
 * that decoding them takes. So a batch of three elements whose last byte is the rank of the batch
 * before is taken to be of that rank, unless the byte may be the end of a longer number.
 */
public final class BatchRank {
    /** The batch names no rank. */
    public static final long NONE = -1;

    private static final byte[][] NAMES = {
        EventFields.ascii("data_parallel_rank"),
        EventFields.ascii("dp_rank"),
        EventFields.ascii("attn_dp_rank")
    };

    private static final int NIL = 0xc0;
    private static final int UNKNOWN = -1;

    private final MsgpackReader batch = new MsgpackReader();
    private int lastByte = UNKNOWN; // of the latest batch whose rank is one byte

    /**
     * Whether a message may be a batch: an array that begins with a name is none, such as a load
     * report.
     *
     * @param payload holds the message
     * @param offset its first byte
     * @param length its bytes
     */
    public boolean isBatch(byte[] payload, int offset, int length) {
        batch.wrap(payload, offset, length);
        return batch.peek() != MsgpackReader.Kind.ARRAY
                || batch.readArrayHeader() < 1
                || batch.peek() != MsgpackReader.Kind.STRING;
    }

    /**
     * The rank of a batch.
     *
     * @param payload holds the batch
     * @param offset its first byte
     * @param length its bytes
     * @return the rank, {@link #NONE} if there is none or the bytes are no batch
     */
    public long of(byte[] payload, int offset, int length) {
        batch.wrap(payload, offset, length);
        if (batch.peek() == MsgpackReader.Kind.MAP) {
            return inMap();
        }
        final long elements = batch.readArrayHeader();
        if (elements < 3 || batch.peek() == MsgpackReader.Kind.STRING) {
            return NONE;
        }
        final int tail = payload[offset + length - 1] & 0xff;
        if (elements == 3 && tail == lastByte && endsInOneByte(payload, offset, length)) {
            return tail == NIL ? NONE : tail;
        }
        final boolean behindTime = batch.skip();
        final boolean behindEvents = behindTime && batch.skip();
        if (!behindEvents) {
            return NONE;
        }
        final boolean none = batch.peek() == MsgpackReader.Kind.NIL;
        final long rank = rank();
        final boolean oneByte = none ? tail == NIL : rank == tail && tail <= Byte.MAX_VALUE;
        lastByte = elements == 3 && oneByte ? tail : UNKNOWN;
        return rank;
    }

    /** Whether no number of two bytes or more can end with the last one. */
    private static boolean endsInOneByte(byte[] payload, int offset, int length) {
        return !isHead(payload, offset, length - 2, 0xcc, 0xd0)
                && !isHead(payload, offset, length - 3, 0xcd, 0xd1)
                && !isHead(payload, offset, length - 5, 0xce, 0xd2)
                && !isHead(payload, offset, length - 9, 0xcf, 0xd3);
    }

    private static boolean isHead(byte[] payload, int offset, int at, int unsigned, int signed) {
        final int head = at < 0 ? 0 : payload[offset + at] & 0xff;
        return head == unsigned || head == signed;
    }

    private long inMap() {
        final long pairs = batch.readMapHeader();
        for (long i = 0; i < pairs && batch.ok(); i++) {
            if (batch.peek() != MsgpackReader.Kind.STRING || !batch.readData()) {
                batch.skip();
            } else if (isRankName()) {
                return rank();
            }
            batch.skip();
        }
        return NONE;
    }

    private boolean isRankName() {
        for (byte[] name : NAMES) {
            if (batch.dataEquals(name)) {
                return true;
            }
        }
        return false;
    }

    private long rank() {
        if (batch.peek() != MsgpackReader.Kind.INTEGER) {
            return NONE;
        }
        final long rank = batch.readLong();
        return batch.ok() && rank >= 0 ? rank : NONE;
    }
}
