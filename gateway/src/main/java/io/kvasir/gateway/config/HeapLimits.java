package io.kvasir.gateway.config;

/** Limits of memory that follow the heap of the JVM where nothing is set. */
public final class HeapLimits {
    /** One rendering, and all bodies together, may take one part of so many of the heap. */
    private static final int SHARE = 8;

    /** One body may be one part of so many: what is made of it takes some ten times its length. */
    private static final int BODY_SHARE = 64;

    private static final int MAX_BODY_BYTES = 32 << 20;

    private HeapLimits() {}

    /** What one rendering, and all bodies together, may take of the heap. */
    public static long share() {
        return Runtime.getRuntime().maxMemory() / SHARE;
    }

    /** Longest request body: {@link GatewaySettings#MAX_BODY_BYTES}, or what the heap allows. */
    public static int bodyBytes(GatewayConfig config) {
        final Integer given = config.get(GatewaySettings.MAX_BODY_BYTES);
        return given == null ? bodyBytes(Runtime.getRuntime().maxMemory()) : given;
    }

    /** Memory for bodies: {@link GatewaySettings#MAX_BODY_BYTES_IN_FLIGHT}, or the share. */
    public static long bodyBytesInFlight(GatewayConfig config) {
        final Long given = config.get(GatewaySettings.MAX_BODY_BYTES_IN_FLIGHT);
        return given == null ? share() : given;
    }

    static int bodyBytes(long heapBytes) {
        return (int) Math.min(MAX_BODY_BYTES, heapBytes / BODY_SHARE);
    }
}
