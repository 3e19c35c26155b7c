package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Path;

/**
 * The real NIXL library for tests: the one that {@code KVASIR_NIXL_LIBRARY} names, else the PyPI
 * wheel, installed once below the build's folder.
 *
 * @param library full path of {@code libnixl_capi.so}; null when it cannot be had
 * @param why what is missing then
 */
public record NixlWheel(Path library, String why) {
    private static final String VARIABLE = "KVASIR_NIXL_LIBRARY";
    private static final String WHEEL = "nixl-cu12==1.5.1";
    private static final String LIBRARY = ".nixl_cu12.mesonpy.libs/libnixl_capi.so";

    /**
     * Finds it, or installs it; the second time there is nothing to do. Several test processes may
     * ask at once.
     *
     * @return the library, or why there is none
     */
    public static NixlWheel get() {
        final String named = System.getenv(VARIABLE);
        if (named != null) {
            return new NixlWheel(Path.of(named), "");
        }
        if (!System.getProperty("os.name").equals("Linux")
                || !System.getProperty("os.arch").equals("amd64")) {
            return new NixlWheel(null, "the wheel is for Linux on x86-64");
        }
        try {
            return new NixlWheel(BuildFolder.pip("nixl-cu12", LIBRARY, WHEEL), "");
        } catch (IOException e) {
            return new NixlWheel(null, e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return new NixlWheel(null, "interrupted");
        }
    }

    /**
     * Whether there is one.
     *
     * @return false when {@link #why} says what is missing
     */
    public boolean isThere() {
        return library != null;
    }
}
