package io.kvasir.router.settings;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

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

    /**
     * Makes every check, in order, and throws this with all that was said if some fail.
     *
     * @param checks each throws an {@link IllegalArgumentException} that says what is wrong
     */
    public static void throwIfAnyFails(List<Runnable> checks) {
        throwIfAnyFails(checks, Runnable::run);
    }

    /** The same with one check, which each of many has to pass. */
    public static <T> void throwIfAnyFails(List<T> all, Consumer<T> check) {
        final List<String> problems = new ArrayList<>();
        for (T one : all) {
            try {
                check.accept(one);
            } catch (IllegalArgumentException e) {
                problems.add(e.getMessage());
            }
        }
        throwIfAny(problems);
    }
}
