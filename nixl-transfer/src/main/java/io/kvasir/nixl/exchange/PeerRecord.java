package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.ExchangeException.Kind;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;

/**
 * What peers need of one end of transfers in order to reach it. Immutable; equal by content.
 *
 * <p>Records of one name are ordered: by incarnation, then by generation. So each start of an end
 * takes a larger incarnation than the one before, and each registration a larger generation.
 */
public final class PeerRecord {
    /** Longest encoded record: fits a message of NATS and, as base64, a request of etcd. */
    public static final int MAX_BYTES = 512 << 10;

    /** Longest name, in bytes of UTF-8. */
    public static final int MAX_NAME_BYTES = 200;

    /** Longest digest, in bytes of UTF-8. */
    public static final int MAX_DIGEST_BYTES = 256;

    private final String name;
    private final long incarnation;
    private final long generation;
    private final byte[] metadata;
    private final PeerMemory memory;
    private final String digest;
    private final byte[] encoded;

    /**
     * Makes one.
     *
     * @param name what peers look for, such as the worker's; 1..{@value #MAX_NAME_BYTES} bytes
     * @param incarnation of the end's process; larger after each start, see {@link #incarnation}
     * @param generation of what is registered; larger after each registration
     * @param metadata of the end's transport, after the registration
     * @param memory what peers may reach
     * @param digest of whatever must be equal at both ends, such as model, cache type and layout;
     *     empty for none
     * @throws IllegalArgumentException naming the value that cannot be, if an encoded record would
     *     be longer than {@value #MAX_BYTES} or peers would refuse its memory as too large
     */
    public PeerRecord(
            String name,
            long incarnation,
            long generation,
            byte[] metadata,
            PeerMemory memory,
            String digest) {
        this.name = checked("name", name, 1, MAX_NAME_BYTES);
        this.incarnation = incarnation;
        this.generation = generation;
        this.metadata = metadata.clone();
        this.memory = memory;
        this.digest = checked("digest", digest, 0, MAX_DIGEST_BYTES);
        this.encoded = PeerRecordCodec.encode(this);
        if (encoded.length > MAX_BYTES) {
            throw new IllegalArgumentException(
                    "the record of "
                            + name
                            + " takes "
                            + encoded.length
                            + " bytes, the limit is "
                            + MAX_BYTES
                            + "; register fewer regions, or give a layout instead of regions");
        }
    }

    private static String checked(String what, String text, int min, int max) {
        final int length = text.getBytes(StandardCharsets.UTF_8).length;
        if (length < min || length > max) {
            throw new IllegalArgumentException(
                    what + " has " + length + " bytes, the limits are " + min + ".." + max);
        }
        return text;
    }

    /**
     * An incarnation for a process that starts now.
     *
     * @param start on a clock that is not set back between two starts
     * @return microseconds since 1970
     */
    public static long incarnation(Instant start) {
        return ChronoUnit.MICROS.between(Instant.EPOCH, start);
    }

    /**
     * Reads a record.
     *
     * @param encoded what {@link #encode} returned, here or in another process or version
     * @throws ExchangeException of kind {@code MALFORMED}
     */
    public static PeerRecord decode(byte[] encoded) {
        return PeerRecordCodec.decode(encoded);
    }

    /**
     * The bytes that stand for it; fields that this version does not know are not kept.
     *
     * @return a copy, at most {@value #MAX_BYTES}
     */
    public byte[] encode() {
        return encoded.clone();
    }

    /** What peers look for. */
    public String name() {
        return name;
    }

    /** Which start of its process it is of. */
    public long incarnation() {
        return incarnation;
    }

    /** Which registration it is of. */
    public long generation() {
        return generation;
    }

    /** Metadata of the transport: a copy. */
    public byte[] metadata() {
        return metadata.clone();
    }

    /** What peers may reach. */
    public PeerMemory memory() {
        return memory;
    }

    /** What must be equal at both ends; empty for nothing. */
    public String digest() {
        return digest;
    }

    /**
     * Whether it replaces another record of its name.
     *
     * @param other of the same name
     * @return true if its incarnation is larger, or equal and its generation is larger
     */
    public boolean isNewerThan(PeerRecord other) {
        return incarnation > other.incarnation
                || (incarnation == other.incarnation && generation > other.generation);
    }

    /**
     * Refuses a peer that is of another kind.
     *
     * @param expected digest of this end; empty accepts all
     * @throws ExchangeException of kind {@code INCOMPATIBLE}, with both digests
     */
    public void requireCompatible(String expected) {
        if (!expected.isEmpty() && !expected.equals(digest)) {
            throw new ExchangeException(
                    Kind.INCOMPATIBLE,
                    "peer "
                            + name
                            + " has the digest '"
                            + digest
                            + "', expected is '"
                            + expected
                            + "': model, cache type or layout differ");
        }
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PeerRecord that && Arrays.equals(encoded, that.encoded);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(encoded);
    }

    @Override
    public String toString() {
        return "PeerRecord[" + name + ", " + incarnation + "." + generation + "]";
    }
}
