package io.kvasir.nats;

import io.kvasir.registry.LeaseTtl;

import java.time.Duration;
import java.util.regex.Pattern;

/**
 * How a {@link NatsExchange} uses NATS.
 *
 * @param access where it is; limits each request, too
 * @param bucket of the key-value store; made if it is not there: letters, digits, - and _
 * @param ttl how long a record outlives its owner, 1 s..1 h; each record is renewed three times in
 *     it. Equal for all that use the bucket
 */
public record NatsConfig(NatsAccess access, String bucket, Duration ttl) {
    /** The bucket if nothing else is said. */
    public static final String BUCKET = "kvasir-cards";

    private static final Pattern NAME = Pattern.compile("[-_a-zA-Z0-9]{1,64}");

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException naming the one that cannot be
     */
    public NatsConfig {
        if (!NAME.matcher(bucket).matches()) {
            throw new IllegalArgumentException(
                    "bucket='" + bucket + "': 1..64 letters, digits, - and _");
        }
        LeaseTtl.check(ttl);
    }

    /**
     * Records that outlive their owner by 5 s; requests of at most 2 s.
     *
     * @param servers where NATS is
     */
    public static NatsConfig of(String servers) {
        return new NatsConfig(NatsAccess.of(servers), BUCKET, Duration.ofSeconds(5));
    }
}
