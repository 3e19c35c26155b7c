package io.kvasir.cli;

import io.kvasir.cli.console.ExitCode;

import java.util.Optional;

/**
 * What {@code kvasir.jar} starts. It needs no other jar, so that it can say that the process may
 * not open as many: of {@link Kvasir} the JVM would say that a class is missing.
 */
public final class Main {
    private Main() {}

    /**
     * Runs the command line and ends the JVM with its exit code.
     *
     * @param args words of the command line
     */
    public static void main(String[] args) {
        final Optional<String> problem =
                OpenFiles.problem(System.getProperty("java.class.path"), OpenFiles.LIMITS);
        if (problem.isPresent()) {
            System.err.println("kvasir: " + problem.get());
            System.exit(ExitCode.FAILED);
        }
        Kvasir.main(args);
    }
}
