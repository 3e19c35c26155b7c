package io.kvasir.core.closing;

import java.util.Arrays;
import java.util.Collection;

/** Closes several things, each of them whatever becomes of the others. Stateless. */
public final class Closing {
    private Closing() {}

    /**
     * Closes all in their order, also when some of them throw, an {@link Error} included. The first
     * that was thrown is thrown at the end, with the others suppressed.
     *
     * @param all what is null is left out
     */
    public static void all(AutoCloseable... all) {
        all(Arrays.asList(all));
    }

    /**
     * Closes all in their order as {@link #all(AutoCloseable...)} does.
     *
     * @param all what is null is left out
     */
    public static void all(Collection<? extends AutoCloseable> all) {
        final Throwable first = all(all, null);
        if (first != null) {
            throw unchecked(first);
        }
    }

    /**
     * Closes all in their order after something has failed, which is still to be thrown.
     *
     * @param failure gets suppressed what they throw
     * @param all what is null is left out
     */
    public static void after(Throwable failure, AutoCloseable... all) {
        all(Arrays.asList(all), failure);
    }

    @SuppressWarnings("ReferenceEquality") // nothing suppresses itself
    private static Throwable all(Collection<? extends AutoCloseable> all, Throwable before) {
        Throwable first = before;
        for (AutoCloseable each : all) {
            try {
                if (each != null) {
                    each.close();
                }
            } catch (Throwable t) { // of an embedder's part, say, whose classes do not fit
                if (first == null) {
                    first = t;
                } else if (first != t) {
                    first.addSuppressed(t);
                }
            }
        }
        return first;
    }

    /** Throws it as it is, checked or not. */
    @SuppressWarnings("unchecked") // the cast is none at run time
    private static <E extends Throwable> RuntimeException unchecked(Throwable t) throws E {
        throw (E) t;
    }
}
