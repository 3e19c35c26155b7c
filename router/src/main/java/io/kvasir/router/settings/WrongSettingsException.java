package io.kvasir.router.settings;

import java.util.List;

/** Settings that are wrong, each with what is wrong; the message has a line for each. */
public final class WrongSettingsException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    private WrongSettingsException(List<String> problems) {
        super(String.join("\n", problems));
    }

    /**
     * Throws this if there is something wrong.
     *
     * @param problems one of each, in one line
     */
    public static void throwIfAny(List<String> problems) {
        if (!problems.isEmpty()) {
            throw new WrongSettingsException(problems);
        }
    }
}
