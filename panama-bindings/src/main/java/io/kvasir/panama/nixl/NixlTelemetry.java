package io.kvasir.panama.nixl;

/**
 * What one transfer took, as NIXL measured it. Filled by {@link NixlTransfers#telemetry}; reusable.
 * A late poll counts as transfer time.
 */
public final class NixlTelemetry {
    /** Start, in microseconds since 1970. */
    public long startMicros;

    /** Time inside the post, in microseconds. */
    public long postMicros;

    /** Time from the post to the poll that saw the end, in microseconds. */
    public long transferMicros;

    /** Bytes moved. */
    public long bytes;

    /** Descriptors, after neighbours were merged. */
    public long descriptors;

    /** Nothing measured yet. */
    public NixlTelemetry() {}
}
