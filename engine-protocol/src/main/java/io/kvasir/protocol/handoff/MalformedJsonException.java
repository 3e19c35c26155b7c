package io.kvasir.protocol.handoff;

import java.io.Serial;

/** Bytes are not the JSON that was asked for. The fault of the sender; not retryable. */
public final class MalformedJsonException extends IllegalArgumentException {
    @Serial private static final long serialVersionUID = 1L;

    private final int offset;

    MalformedJsonException(String problem, int offset) {
        super(problem + " at byte " + offset);
        this.offset = offset;
    }

    /**
     * Returns where the problem lies.
     *
     * @return offset in bytes from the start of the parsed range
     */
    public int offset() {
        return offset;
    }
}
