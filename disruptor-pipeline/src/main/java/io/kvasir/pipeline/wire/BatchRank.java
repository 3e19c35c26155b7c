package io.kvasir.pipeline.wire;

/** Finds the data-parallel rank in an event batch without decoding its events. */
public final class BatchRank {
    /** The batch names no rank. */
    public static final long NONE = -1;

    private final MsgpackReader batch = new MsgpackReader();

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
        if (batch.readArrayHeader() < 3 || !batch.skip() || !batch.skip()) {
            return NONE;
        }
        return rank();
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
        for (byte[] name : EngineBatchDecoder.RANKS) {
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
