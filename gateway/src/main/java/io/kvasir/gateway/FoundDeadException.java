package io.kvasir.gateway;

import java.io.IOException;

/** Ends requests that wait for a worker which probes have found dead. */
final class FoundDeadException extends IOException {
    private static final long serialVersionUID = 1L;

    FoundDeadException(String message) {
        super(message);
    }
}
