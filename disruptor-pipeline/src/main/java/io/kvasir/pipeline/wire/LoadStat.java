package io.kvasir.pipeline.wire;

/**
 * A load report that SGLang sends on the socket of its KV events (topic {@code load}), in msgpack:
 *
 * <pre>
 * ["LoadStat", running requests, waiting requests, tokens in use, tokens of the cache, ...]
 * </pre>
 *
 * <p>What follows may change with the engine and is not read. A view that is reused; one thread at
 * a time. Allocates nothing and throws nothing for any input.
 */
public final class LoadStat {
    private static final byte[] NAME = EventFields.ascii("LoadStat");
    private static final int FIELDS = 5;

    private final MsgpackReader in = new MsgpackReader();
    private long running;
    private long waiting;
    private long usedTokens;
    private long tokens;

    /** A view of nothing. */
    public LoadStat() {}

    /**
     * Reads a message.
     *
     * @param payload holds it; not kept
     * @param offset its first byte
     * @param length its bytes
     * @return false if it is no load report; its numbers are any then
     */
    public boolean read(byte[] payload, int offset, int length) {
        in.wrap(payload, offset, length);
        final long count = in.readArrayHeader();
        if (count < FIELDS || !in.readData() || !in.dataEquals(NAME)) {
            return false;
        }
        running = in.readLong();
        waiting = in.readLong();
        usedTokens = in.readLong();
        tokens = in.readLong();
        for (long i = FIELDS; i < count && in.ok(); i++) {
            in.skip();
        }
        return in.ok() && in.peek() == MsgpackReader.Kind.END;
    }

    /** Requests in the engine's batches. */
    public long running() {
        return running;
    }

    /** Requests that wait. */
    public long waiting() {
        return waiting;
    }

    /** Tokens in use in the engine's cache. */
    public long usedTokens() {
        return usedTokens;
    }

    /** Tokens that the engine's cache has room for. */
    public long tokens() {
        return tokens;
    }
}
