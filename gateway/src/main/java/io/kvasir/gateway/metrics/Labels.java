package io.kvasir.gateway.metrics;

import io.kvasir.pipeline.source.SourceStatus;
import io.kvasir.router.Worker;

import java.util.Locale;

/** Values of labels. */
final class Labels {
    private Labels() {}

    /** The data-parallel rank of a worker. */
    static String rank(Worker worker) {
        return Integer.toString(worker.dpRank());
    }

    /** The data-parallel rank of the worker whose events a source brings. */
    static String rank(SourceStatus source) {
        return Integer.toString(source.dpRank());
    }

    /** A constant, as it is spelled in a label. */
    static String lower(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT);
    }
}
