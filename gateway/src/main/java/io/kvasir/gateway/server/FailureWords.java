package io.kvasir.gateway.server;

import io.kvasir.registry.FailureText;

/** What a failure says to an operator, for services, which know no registry. Stateless. */
public final class FailureWords {
    private FailureWords() {}

    /** In words, without names of classes; see {@link FailureText#of}. */
    public static String of(Throwable failure) {
        return FailureText.of(failure);
    }
}
