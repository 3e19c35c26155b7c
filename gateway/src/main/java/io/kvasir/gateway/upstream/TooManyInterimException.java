package io.kvasir.gateway.upstream;

import java.io.IOException;

/** A worker sent more interim answers (1xx) before its final one than it may. */
final class TooManyInterimException extends IOException {
    private static final long serialVersionUID = 1L;

    TooManyInterimException(int most, int mostBytes) {
        super(
                "it sent more than "
                        + most
                        + " interim answers (1xx), or more than max-head-bytes="
                        + mostBytes
                        + " of them");
    }
}
