package io.kvasir.panama.nixl;

import java.util.Optional;

/** Result of a call of NIXL's C ABI: zero done, one still running, negative failed. */
public enum NixlStatus {
    /** Done. */
    SUCCESS(0),
    /** Posted and not finished; poll again. */
    IN_PROGRESS(1),
    /** An argument is missing or out of range. */
    INVALID_PARAM(-1),
    /** The backend refused or failed; the C ABI tells no more, a lost peer included. */
    BACKEND(-2),
    /** The handle is not in a state that allows the call. */
    INVALID_STATE(-3),
    /** A C++ exception ended the call. */
    EXCEPTION(-4),
    /** Telemetry was not switched on when the agent was made. */
    NO_TELEMETRY(-5),
    /** Unknown agent or memory; from NIXL 1.5.0, before that {@link #BACKEND}. */
    NOT_FOUND(-6);

    private final int code;

    NixlStatus(int code) {
        this.code = code;
    }

    /**
     * Returns the number that stands for this status in C.
     *
     * @return 0, 1 or a negative number
     */
    public int code() {
        return code;
    }

    /**
     * Finds the status of a number returned by NIXL.
     *
     * @param code the number
     * @return the status, or empty for a number that no known version returns
     */
    public static Optional<NixlStatus> of(int code) {
        for (NixlStatus status : values()) {
            if (status.code == code) {
                return Optional.of(status);
            }
        }
        return Optional.empty();
    }

    /**
     * Returns the status of a call that did not fail.
     *
     * @param code the number returned by NIXL
     * @param function the C function that returned it, for the message
     * @param subject what the call was about, for the message
     * @return {@link #SUCCESS} or {@link #IN_PROGRESS}
     * @throws NixlException for any other number
     */
    static NixlStatus check(int code, String function, String subject) {
        return switch (code) {
            case 0 -> SUCCESS;
            case 1 -> IN_PROGRESS;
            default -> throw new NixlException(code, function, subject);
        };
    }
}
