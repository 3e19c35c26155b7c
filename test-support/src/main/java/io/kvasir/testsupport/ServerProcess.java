package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** A real server for tests, which keeps its folder and its address from one start to the next. */
public abstract class ServerProcess implements AutoCloseable {
    private static final long PATIENCE_NS = 180_000_000_000L;
    private static final int MOST_TRIES = 3;

    private final Path folder;
    private Process process;

    /**
     * Makes one that is not yet started.
     *
     * @param folder an empty one
     */
    ServerProcess(Path folder) {
        this.folder = folder;
    }

    /** The command line; asked for before each start. */
    abstract List<String> command() throws IOException;

    /** Whether clients can use it. */
    abstract boolean answers() throws IOException;

    /** Where it stores what it is to keep. */
    final Path data() {
        return folder.resolve("data");
    }

    /** Its folder. */
    final Path folder() {
        return folder;
    }

    /** Starts it, with what its folder contains, and waits until it answers. */
    public final void start() throws IOException, InterruptedException {
        final Path log = folder.resolve("server.log");
        for (int tries = 1; !isStarted(log); tries++) { // its port may be taken at the moment
            if (tries == MOST_TRIES) {
                throw new IOException("the server does not start: " + Files.readString(log));
            }
        }
    }

    private boolean isStarted(Path log) throws IOException, InterruptedException {
        process =
                new ProcessBuilder(command())
                        .redirectErrorStream(true)
                        .redirectOutput(ProcessBuilder.Redirect.appendTo(log.toFile()))
                        .start();
        final long deadlineNs = System.nanoTime() + PATIENCE_NS;
        while (!answers()) {
            if (!process.isAlive()) {
                return false;
            }
            if (System.nanoTime() - deadlineNs > 0) {
                stop();
                throw new IOException("the server does not answer: " + Files.readString(log));
            }
            Thread.sleep(20);
        }
        return true;
    }

    /** Kills it; its folder stays. */
    public final void stop() throws InterruptedException {
        if (process != null) {
            process.destroyForcibly().waitFor();
        }
    }

    /** Stops it where it is: connections stay, nothing is answered. */
    public final void hang() throws IOException, InterruptedException {
        Signals.stop(process);
    }

    /** Lets it go on after it hung. */
    public final void goOn() throws IOException, InterruptedException {
        Signals.goOn(process);
    }

    /** Has it read its configuration again, where it does that without a new start. */
    public final void reload() throws IOException, InterruptedException {
        Signals.hangUp(process);
    }

    /** Deletes all that it has stored; not while it runs. */
    public final void forget() throws IOException {
        BuildFolder.delete(data());
    }

    /** Deletes its folder; not while it runs, and it cannot be started again. */
    public final void delete() throws IOException {
        BuildFolder.delete(folder);
    }

    @Override
    public final void close() {
        if (process != null) {
            process.destroyForcibly();
        }
    }
}
