package io.kvasir.nixl.engine;

/**
 * Limits of a {@link TransferEngine}.
 *
 * @param queueCapacity transfers that wait at most, 1..2^20; more are refused
 * @param inFlightRequests requests posted at a time at most, 1..2^20
 * @param inFlightBytes bytes posted at a time at most, at least 1; one request that is larger goes
 *     alone
 * @param requestBytes bytes of one request at most, at least 1; a larger descriptor goes alone. A
 *     post may copy all of them before anything else is looked at
 * @param requestDescriptors descriptors of one request at most, at least 1
 */
public record TransferConfig(
        int queueCapacity,
        int inFlightRequests,
        long inFlightBytes,
        long requestBytes,
        int requestDescriptors) {
    private static final int MOST = 1 << 20; // each takes memory from the start on

    /**
     * 1,024 waiting, 64 requests and 256 MiB in flight, requests of 8 MiB and 4,096 descriptors.
     */
    public static final TransferConfig DEFAULT =
            new TransferConfig(1024, 64, 256L << 20, 8L << 20, 4096);

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that is outside its limits
     */
    public TransferConfig {
        checkCount("queueCapacity", queueCapacity);
        checkCount("inFlightRequests", inFlightRequests);
        check("inFlightBytes", inFlightBytes);
        check("requestBytes", requestBytes);
        check("requestDescriptors", requestDescriptors);
    }

    private static void checkCount(String name, int value) {
        if (value < 1 || value > MOST) {
            throw new IllegalArgumentException(name + "=" + value + ", limits are 1.." + MOST);
        }
    }

    private static void check(String name, long value) {
        if (value < 1) {
            throw new IllegalArgumentException(name + "=" + value + ", must be at least 1");
        }
    }
}
