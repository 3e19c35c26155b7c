package io.kvasir.panama.cuda;

import java.io.Serial;
import java.util.Optional;

/** A call of the CUDA driver returned an error. */
public final class CudaException extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    private final int code;
    private final String errorName;
    private final String function;

    CudaException(String function, int code, String errorName, String subject) {
        super(
                "%s failed: %s (%d), %s%s"
                        .formatted(function, errorName, code, subject, advice(code)));
        this.code = code;
        this.errorName = errorName;
        this.function = function;
    }

    private static String advice(int code) {
        return code == CudaResult.INVALID_CONTEXT.code()
                ? "; make the context current on this thread first: CudaContext.setCurrent()"
                : "";
    }

    /**
     * Returns the number that the driver returned.
     *
     * @return not 0
     */
    public int code() {
        return code;
    }

    /**
     * Returns the meaning of {@link #code()}.
     *
     * @return empty for a number that is not distinguished here
     */
    public Optional<CudaResult> result() {
        return CudaResult.of(code);
    }

    /**
     * Returns the error's name in C, from the driver where it knows the number.
     *
     * @return {@code CUDA_ERROR_...}
     */
    public String errorName() {
        return errorName;
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
