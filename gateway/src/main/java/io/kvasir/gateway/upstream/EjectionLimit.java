package io.kvasir.gateway.upstream;

import java.util.function.IntSupplier;

/**
 * Keeps a quorum of the living servers in use whatever they answer: where fewer are left, the
 * ejected ones are used as if they were not ejected. What many servers do alike is seldom their
 * fault.
 */
final class EjectionLimit {
    private final IntSupplier percent;

    /**
     * @param percent share of the living servers that must be left; asked each time
     */
    EjectionLimit(IntSupplier percent) {
        this.percent = percent;
    }

    /**
     * Whether ejected servers are to be used, too.
     *
     * @param living servers that something new may be sent to, ejected ones included
     * @param ejected those of them that are ejected
     */
    boolean isExceeded(int living, int ejected) {
        return (living - ejected) * 100L < percent.getAsInt() * (long) living;
    }
}
