package io.kvasir.gateway.upstream;

import java.util.Collection;

/**
 * Keeps a quorum of the living servers in use whatever they answer: where fewer are left, the
 * ejected ones are used as if they were not ejected. What many servers do alike is seldom their
 * fault.
 */
final class EjectionLimit {
    private final int percent;

    /**
     * @param percent share of the living servers that must be left
     */
    EjectionLimit(int percent) {
        this.percent = percent;
    }

    /** Applies the limit to all servers after one of them has changed. One thread at a time. */
    void apply(Collection<Upstream> all) {
        int living = 0;
        int ejected = 0;
        for (Upstream upstream : all) {
            if (upstream.draining()) {
                continue; // nothing new is sent to it, so it is none of those that are left
            }
            switch (upstream.health().state()) {
                case DOWN -> {}
                case EJECTED -> {
                    living++;
                    ejected++;
                }
                case UNKNOWN, UP, TRIAL -> living++;
            }
        }
        final boolean exceeded = (living - ejected) * 100L < percent * (long) living;
        all.forEach(upstream -> upstream.useEjected(exceeded));
    }
}
