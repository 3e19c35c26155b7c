package io.kvasir.nixl.transport;

/** What a finished request took. Filled by {@link KvTransport#telemetry}; reusable. */
public final class TransferTelemetry {
    /** Time inside the call that posted it, in nanoseconds. */
    public long postNs;

    /** Time from the post to the moment its end was seen, in nanoseconds. */
    public long transferNs;

    /** Bytes copied. */
    public long bytes;

    /** Descriptors copied, after neighbours were merged where the transport merges them. */
    public long descriptors;

    /** Nothing measured yet. */
    public TransferTelemetry() {}
}
