package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.HandoffProtocol;

import java.util.List;
import java.util.function.Predicate;

/**
 * What some workers can do together.
 *
 * @param whole whether one of them answers a whole request
 * @param prefills taints of the protocols of those of the role prefill
 * @param decodes taints of the protocols of those of the role decode
 */
public record Capabilities(boolean whole, long prefills, long decodes) {
    static final Capabilities NONE = new Capabilities(false, 0, 0);

    /** What those of some workers can do that can be used. */
    public static Capabilities of(List<Upstream> all, Predicate<Upstream> usable) {
        boolean whole = false;
        long prefills = 0;
        long decodes = 0;
        for (Upstream upstream : all) {
            if (!usable.test(upstream)) {
                continue;
            }
            final long protocol = WorkerTaints.of(upstream.handoff());
            switch (upstream.role()) {
                case BOTH -> whole = true;
                case PREFILL -> prefills |= protocol;
                case DECODE -> {
                    decodes |= protocol;
                    whole |= upstream.handoff().decodeWorkerCanPrefill();
                }
            }
        }
        return new Capabilities(whole, prefills, decodes);
    }

    /** Whether there is one of the role prefill. */
    public boolean hasPrefill() {
        return prefills != 0;
    }

    /** Whether there is one of the role decode. */
    public boolean hasDecode() {
        return decodes != 0;
    }

    /** Taints of the protocols in which both halves of a request can be served. */
    long splits() {
        return prefills & decodes;
    }

    /** Whether a request can be split between two of them. */
    public boolean canSplit() {
        return splits() != 0;
    }

    /** The same, for pairs of one protocol. */
    boolean canSplit(HandoffProtocol protocol) {
        return (splits() & WorkerTaints.of(protocol)) != 0;
    }

    /** Whether a request can be answered. */
    public boolean canServe() {
        return whole || canSplit();
    }
}
