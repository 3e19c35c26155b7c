package io.kvasir.router.load;

import java.util.Locale;

/** What became of a report. */
public enum LoadOutcome {
    /** It counts from now on. */
    TAKEN,
    /** The router takes none: {@link io.kvasir.router.settings.RouterSettings#ENGINE_LOAD}. */
    OFF,
    /** A number of it is none, is negative or is beyond what an engine can have. */
    BAD_VALUE,
    /** It says nothing of an engine's load. */
    EMPTY,
    /** A later one of the same source is there, and counts. */
    OLDER,
    /** It is of a worker or rank that is not registered. */
    UNKNOWN_WORKER,
    /** It could not be read: too long, cut off, or of another form. */
    UNREADABLE,
    /** It did not come: the engine was asked and did not answer, or not in time. */
    NO_ANSWER;

    /** As metrics and status write it. */
    public String spelling() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
