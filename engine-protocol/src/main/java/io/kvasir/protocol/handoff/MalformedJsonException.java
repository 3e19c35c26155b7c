package io.kvasir.protocol.handoff;

import java.io.Serial;
import java.util.Optional;

/** Bytes are not the JSON that was asked for. The fault of the sender; not retryable. */
public final class MalformedJsonException extends IllegalArgumentException {
    @Serial private static final long serialVersionUID = 1L;

    private final int offset;
    private String member; // null where it is in none

    MalformedJsonException(String problem, int offset) {
        super(problem + " at byte " + offset);
        this.offset = offset;
    }

    /** Says which member of the object it is about. */
    MalformedJsonException in(String name) {
        member = name;
        return this;
    }

    /**
     * Returns the member of the parsed object that has the problem.
     *
     * @return its name without escapes, or empty where the object itself is malformed
     */
    public Optional<String> member() {
        return Optional.ofNullable(member);
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
