package io.kvasir.router.load;

import java.util.Locale;

/** Whether a worker is left out because it is full. */
public enum BusyState {
    /** It gets requests. */
    OPEN,
    /** It gets none. */
    FULL,
    /** It gets one, which shows whether it gets all again. */
    HALF_OPEN;

    /** As metrics and status write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
