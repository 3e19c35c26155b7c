package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Another router's published Python package, whose publisher and index stand against ours in tests:
 * installed once below the build's folder.
 */
public final class DynamoRuntime {
    private static final String PACKAGE = "ai-dynamo-runtime==1.6.1";
    private static final String OLD_PACKAGE = "ai-dynamo-runtime==0.7.1";

    private DynamoRuntime() {}

    /**
     * Fetches the package.
     *
     * @return its folder, for {@code PYTHONPATH}
     * @throws IOException saying why it cannot be had
     */
    public static Path install() throws IOException {
        return install("dynamo-runtime", PACKAGE);
    }

    /**
     * Fetches the package as it was when events went through a JetStream, and routers kept what
     * they had in its object store.
     *
     * @return its folder, for {@code PYTHONPATH}
     * @throws IOException saying why it cannot be had
     */
    public static Path installOld() throws IOException {
        return install("dynamo-runtime-old", OLD_PACKAGE);
    }

    private static Path install(String name, String requirement) throws IOException {
        try {
            return BuildFolder.pip(name, "dynamo/_core.pyi", requirement).getParent().getParent();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    /**
     * Starts a Python program that uses the package; its errors come with its output.
     *
     * @param folder from {@link #install}
     * @param program the program
     * @param environment variables besides those of this process
     * @param arguments of the program
     */
    public static Process start(
            Path folder, Path program, Map<String, String> environment, String... arguments)
            throws IOException {
        final List<String> command =
                new ArrayList<>(List.of(BuildFolder.PYTHON, program.toString()));
        command.addAll(List.of(arguments));
        final ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
        builder.environment().put("PYTHONPATH", folder.toString());
        builder.environment().put("DYN_LOG", "error");
        builder.environment().putAll(environment);
        return builder.start();
    }
}
