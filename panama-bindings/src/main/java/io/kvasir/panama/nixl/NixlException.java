package io.kvasir.panama.nixl;

import java.io.Serial;
import java.util.Optional;

/** A call of NIXL's C ABI returned an error. */
public final class NixlException extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    private final int code;
    private final String function;

    NixlException(int code, String function, String subject) {
        super(message(code, function, subject));
        this.code = code;
        this.function = function;
    }

    private static String message(int code, String function, String subject) {
        final String name = NixlStatus.of(code).map(Enum::name).orElse("unknown status");
        return "%s failed: %s (%d), %s; NIXL logs the cause, see NIXL_LOG_LEVEL"
                .formatted(function, name, code, subject);
    }

    /**
     * Returns the number that NIXL returned.
     *
     * @return neither 0 nor 1
     */
    public int code() {
        return code;
    }

    /**
     * Returns the meaning of {@link #code()}.
     *
     * @return empty for a number that no known version returns
     */
    public Optional<NixlStatus> status() {
        return NixlStatus.of(code);
    }

    /**
     * Returns the C function that failed.
     *
     * @return its symbol
     */
    public String function() {
        return function;
    }
}
