package io.kvasir.router;

import java.nio.file.NoSuchFileException;

/** Why the last of many tries failed, so that each reason is logged once. One thread. */
final class LastFailure {
    private String reason = ""; // empty once a try has succeeded

    /** Whether this is another reason than that of the try before. */
    boolean isNew(Throwable failure) {
        final String now = reason(failure);
        final boolean isNew = !now.equals(reason);
        reason = now;
        return isNew;
    }

    /** Takes note of a success; whether the try before it failed. */
    boolean ended() {
        final boolean failed = !reason.isEmpty();
        reason = "";
        return failed;
    }

    /** In one line. */
    String reason() {
        return reason;
    }

    private static String reason(Throwable failure) {
        if (failure instanceof NoSuchFileException missing) {
            return missing.getFile() + ": there is no such file or folder";
        }
        final String message = failure.getMessage();
        return message == null || message.isBlank()
                ? failure.getClass().getSimpleName()
                : message.lines().findFirst().orElseThrow();
    }
}
