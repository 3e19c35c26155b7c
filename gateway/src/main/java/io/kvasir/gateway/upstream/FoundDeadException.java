package io.kvasir.gateway.upstream;

import java.io.IOException;

/** Ends requests that wait for a worker which probes have found dead. */
public final class FoundDeadException extends IOException {
    private static final long serialVersionUID = 1L;

    /** Says what the probes met. */
    public FoundDeadException(String message) {
        super(message);
    }
}
