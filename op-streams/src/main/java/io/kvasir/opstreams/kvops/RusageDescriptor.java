package io.kvasir.opstreams.kvops;

/**
 * Layout of {@code struct rusage} and {@code struct timespec} on 64-bit Linux.
 *
 * <pre>
 *   0        16       32                 128      136      144
 *   +--------+--------+------------------+--------+--------+
 *   | utime  | stime  | twelve counters  | nvcsw  | nivcsw |
 *   +--------+--------+------------------+--------+--------+
 *   0        8        16
 *   +--------+--------+
 *   | tv_sec | tv_nsec|
 *   +--------+--------+
 * </pre>
 */
final class RusageDescriptor {
    static final int INVOLUNTARY_SWITCHES_OFFSET = 136;
    static final int RUSAGE_LENGTH = 144;
    static final int SECONDS_OFFSET = 0;
    static final int NANOS_OFFSET = 8;
    static final int TIMESPEC_LENGTH = 16;

    private RusageDescriptor() {}
}
