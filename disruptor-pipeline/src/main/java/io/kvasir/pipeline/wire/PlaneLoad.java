package io.kvasir.pipeline.wire;

/**
 * A load report of an event plane (topic {@code kv_metrics}): a map in msgpack, within the plane's
 * envelope or by itself, or in JSON. Two forms are read, whose members may be null or missing:
 *
 * <pre>
 * now    {worker_id, dp_rank, active_decode_blocks, active_prefill_tokens, kv_used_blocks}
 * 0.7    {worker_id, data: {worker_stats: {data_parallel_rank, request_active_slots,
 *         num_requests_waiting}, kv_stats: {kv_active_blocks, kv_total_blocks}}}
 * </pre>
 *
 * <p>A view that is reused; one thread at a time. Allocates nothing and throws nothing for any
 * input. The numbers are as they were written: what is negative is so there.
 */
public final class PlaneLoad {
    /** In place of a number that the report does not have. */
    public static final long MISSING = Long.MIN_VALUE;

    private static final byte[] ACTIVE_DECODE_BLOCKS = EventFields.ascii("active_decode_blocks");
    private static final byte[] ACTIVE_PREFILL_TOKENS = EventFields.ascii("active_prefill_tokens");
    private static final byte[] KV_USED_BLOCKS = EventFields.ascii("kv_used_blocks");
    private static final byte[] WORKER_STATS = EventFields.ascii("worker_stats");
    private static final byte[] KV_STATS = EventFields.ascii("kv_stats");
    private static final byte[] DATA_PARALLEL_RANK = EventFields.ascii("data_parallel_rank");
    private static final byte[] REQUEST_ACTIVE_SLOTS = EventFields.ascii("request_active_slots");
    private static final byte[] NUM_REQUESTS_WAITING = EventFields.ascii("num_requests_waiting");
    private static final byte[] KV_ACTIVE_BLOCKS = EventFields.ascii("kv_active_blocks");
    private static final byte[] KV_TOTAL_BLOCKS = EventFields.ascii("kv_total_blocks");

    private final MsgpackReader envelope = new MsgpackReader();
    private final MsgpackReader msgpack = new MsgpackReader();
    private final JsonReader json = new JsonReader();
    private boolean named;
    private long workerId;
    private long dpRank;
    private long publishedAt;
    private long running;
    private long waiting;
    private long waitingTokens;
    private long decodeBlocks;
    private long usedBlocks;
    private long blocks;

    /** A view of nothing. */
    public PlaneLoad() {}

    /**
     * Reads a message.
     *
     * @param message holds it; not kept
     * @param offset its first byte
     * @param length its bytes
     * @return false if it is no load report of a worker; its numbers are any then
     */
    public boolean read(byte[] message, int offset, int length) {
        named = false;
        dpRank = 0;
        publishedAt = MISSING;
        running = MISSING;
        waiting = MISSING;
        waitingTokens = MISSING;
        decodeBlocks = MISSING;
        usedBlocks = MISSING;
        blocks = MISSING;
        if (RouterEventDecoder.isJson(message, offset, length)) {
            return readReport(json.wrap(message, offset, length));
        }
        return openEnvelope(message, offset, length)
                ? readReport(msgpack.wrap(message, envelope.dataOffset(), envelope.dataLength()))
                : readReport(msgpack.wrap(message, offset, length));
    }

    /** Leaves the reader at the payload; false where there is no envelope. */
    private boolean openEnvelope(byte[] message, int offset, int length) {
        envelope.wrap(message, offset, length);
        int payload = -1;
        for (long pairs = envelope.openMap(); envelope.hasMore(pairs); pairs--) {
            if (!envelope.readKey()) {
                envelope.skip();
            } else if (envelope.dataEquals(RouterEventNames.PUBLISHED_AT)) {
                publishedAt = envelope.readLong();
            } else if (envelope.dataEquals(RouterEventNames.PAYLOAD)) {
                payload = envelope.position();
                envelope.skip();
            } else {
                envelope.skip();
            }
        }
        if (!envelope.ok() || payload < 0) {
            return false;
        }
        envelope.position(payload);
        return envelope.readData();
    }

    private boolean readReport(DocumentReader in) {
        for (long pairs = in.openMap(); in.hasMore(pairs); pairs--) {
            if (!in.readKey()) {
                in.skip();
            } else if (in.dataEquals(RouterEventNames.WORKER_ID)) {
                workerId = in.readLong();
                named = true;
            } else if (in.dataEquals(RouterEventNames.DP_RANK)) {
                dpRank = orMissing(in);
            } else if (in.dataEquals(ACTIVE_DECODE_BLOCKS)) {
                decodeBlocks = orMissing(in);
            } else if (in.dataEquals(ACTIVE_PREFILL_TOKENS)) {
                waitingTokens = orMissing(in);
            } else if (in.dataEquals(KV_USED_BLOCKS)) {
                usedBlocks = orMissing(in);
            } else if (in.dataEquals(RouterEventNames.DATA)
                    && in.peek() == MsgpackReader.Kind.MAP) {
                readData(in);
            } else {
                in.skip();
            }
        }
        if (dpRank == MISSING) {
            dpRank = 0;
        }
        return in.ok()
                && in.peek() == MsgpackReader.Kind.END
                && named
                && dpRank >= 0
                && dpRank <= Integer.MAX_VALUE;
    }

    private void readData(DocumentReader in) {
        for (long pairs = in.openMap(); in.hasMore(pairs); pairs--) {
            if (!in.readKey()) {
                in.skip();
            } else if ((in.dataEquals(WORKER_STATS) || in.dataEquals(KV_STATS))
                    && in.peek() == MsgpackReader.Kind.MAP) {
                readStats(in);
            } else {
                in.skip();
            }
        }
    }

    private void readStats(DocumentReader in) {
        for (long pairs = in.openMap(); in.hasMore(pairs); pairs--) {
            if (!in.readKey()) {
                in.skip();
            } else if (in.dataEquals(DATA_PARALLEL_RANK)) {
                dpRank = orMissing(in);
            } else if (in.dataEquals(REQUEST_ACTIVE_SLOTS)) {
                running = orMissing(in);
            } else if (in.dataEquals(NUM_REQUESTS_WAITING)) {
                waiting = orMissing(in);
            } else if (in.dataEquals(KV_ACTIVE_BLOCKS)) {
                usedBlocks = orMissing(in);
            } else if (in.dataEquals(KV_TOTAL_BLOCKS)) {
                blocks = orMissing(in);
            } else {
                in.skip();
            }
        }
    }

    private static long orMissing(DocumentReader in) {
        if (in.peek() == MsgpackReader.Kind.NIL) {
            in.skip();
            return MISSING;
        }
        return in.readLong();
    }

    /** The worker, as 64 unsigned bits. */
    public long workerId() {
        return workerId;
    }

    /** The worker's data-parallel rank; 0 where the report names none. */
    public int dpRank() {
        return (int) dpRank;
    }

    /** When it was published, in milliseconds of that host's clock. */
    public long publishedAt() {
        return publishedAt;
    }

    /** Requests in the engine's batches. */
    public long running() {
        return running;
    }

    /** Requests that wait. */
    public long waiting() {
        return waiting;
    }

    /** Tokens that are to be prefilled. */
    public long waitingTokens() {
        return waitingTokens;
    }

    /** Blocks in use: the larger of the two numbers that a report may have of them. */
    public long usedBlocks() {
        return Math.max(usedBlocks, decodeBlocks);
    }

    /** Blocks of the engine's cache. */
    public long blocks() {
        return blocks;
    }
}
