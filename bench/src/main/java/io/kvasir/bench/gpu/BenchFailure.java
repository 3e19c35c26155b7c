package io.kvasir.bench.gpu;

import java.io.Serial;

/** A measurement that cannot go on; the message names what failed and where. */
final class BenchFailure extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    BenchFailure(String message) {
        super(message);
    }
}
