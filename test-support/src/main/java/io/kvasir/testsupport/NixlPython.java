package io.kvasir.testsupport;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * NIXL's Python package for tests: that of the wheel of {@link NixlWheel}, with numpy, which it
 * needs, installed once beside it.
 *
 * @param path for {@code PYTHONPATH}; null when it cannot be had
 * @param module the package's name, which tells of its CUDA version
 * @param why what is missing then
 */
public record NixlPython(String path, String module, String why) {
    /** The Python that it is for. */
    public static final String COMMAND = BuildFolder.PYTHON;

    private static final String NUMPY = "numpy==2.2.6";
    private static final int IMPORT_SECONDS = 60;
    private static final Pattern LIBRARIES =
            Pattern.compile("(.*)/\\.(nixl_cu[0-9]+)\\.mesonpy\\.libs");

    /**
     * Finds it, or installs it, and tries whether this machine's Python can use it.
     *
     * @return the package, or why there is none
     */
    public static NixlPython get() {
        final NixlWheel wheel = NixlWheel.get();
        if (!wheel.isThere()) {
            return missing(wheel.why());
        }
        final Matcher libraries = LIBRARIES.matcher(wheel.library().getParent().toString());
        if (!libraries.matches()) {
            return missing(wheel.library() + " is not of a wheel, which has the package beside it");
        }
        final String module = libraries.group(2);
        try {
            final String path =
                    libraries.group(1)
                            + File.pathSeparator
                            + BuildFolder.pip("numpy", "numpy/__init__.py", NUMPY)
                                    .getParent()
                                    .getParent();
            final String problem = tryImport(path, module);
            return problem.isEmpty() ? new NixlPython(path, module, "") : missing(problem);
        } catch (IOException e) {
            return missing(e.toString());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return missing("interrupted");
        }
    }

    private static NixlPython missing(String why) {
        return new NixlPython(null, null, why);
    }

    private static String tryImport(String path, String module)
            throws IOException, InterruptedException {
        final ProcessBuilder builder =
                new ProcessBuilder(COMMAND, "-c", "import numpy, " + module)
                        .redirectErrorStream(true);
        builder.environment().put("PYTHONPATH", path);
        final Process python = builder.start();
        final String text =
                new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        final boolean ended = python.waitFor(IMPORT_SECONDS, TimeUnit.SECONDS);
        python.destroyForcibly().waitFor();
        return ended && python.exitValue() == 0 ? "" : "it cannot be imported: " + text;
    }

    /**
     * Whether there is one.
     *
     * @return false when {@link #why} says what is missing
     */
    public boolean isThere() {
        return path != null;
    }
}
