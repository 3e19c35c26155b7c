package io.kvasir.panama.nixl;

/**
 * Layout of the C struct {@code nixl_capi_xfer_telemetry_s}, equal in NIXL 1.0.1 to 1.5.1.
 *
 * <pre>
 *   0                       8             16            24            32             40
 *   +-----------------------+-------------+-------------+-------------+--------------+
 *   | start us since epoch  | post us     | transfer us | bytes       | descriptors  |
 *   +-----------------------+-------------+-------------+-------------+--------------+
 * </pre>
 */
final class TelemetryDescriptor {
    static final int START_OFFSET = 0;
    static final int POST_OFFSET = 8;
    static final int TRANSFER_OFFSET = 16;
    static final int BYTES_OFFSET = 24;
    static final int DESCRIPTORS_OFFSET = 32;
    static final int LENGTH = 40;

    private TelemetryDescriptor() {}
}
