package io.kvasir.bench.gpu;

import java.io.Serial;

/** NIXL or CUDA cannot be used here; the message says why and what to change. */
final class MissingPartException extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    MissingPartException(String message) {
        super(message);
    }
}
