package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.ConfigFile;
import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.registry.ConfiguredFile;
import io.kvasir.registry.FailureText;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/**
 * The workers of a YAML file, which is read again when it changes: a list as in the configuration
 * file. Read as a whole every so often, which sees replaced files, links and network file systems
 * alike; a change counts when two readings in a row agree, so that a file that is being written is
 * not taken for a shorter one. One thread.
 */
public final class FileDiscovery implements Discovery {
    private static final Logger LOG = LoggerFactory.getLogger(FileDiscovery.class);
    private static final int MAX_BYTES = 4 << 20;

    private final Path file;
    private final String model;
    private final Duration interval;
    private final Thread thread;
    private Listener listener;
    private byte[] seen; // by the last look; guarded by this
    private byte[] applied; // what the last view or failure is of; guarded by this
    private String lastFailure; // null once all is well; guarded by this

    /**
     * @param model of workers of which the file says none
     * @param interval between two readings
     */
    public FileDiscovery(Path file, String model, Duration interval) {
        this.file = file;
        this.model = model;
        this.interval = interval;
        this.thread = Thread.ofPlatform().daemon().name("kvasir-workers-file").unstarted(this::run);
    }

    @Override
    public String source() {
        return "file";
    }

    @Override
    public synchronized void start(Listener to) {
        listener = to;
        try {
            final byte[] content = content(file);
            to.view(parse(content));
            seen = content;
            applied = content;
        } catch (IOException | IllegalArgumentException e) {
            throw unusable(file, e);
        }
        thread.start();
    }

    /**
     * Reads the file that a configuration names, if any, and nothing more.
     *
     * @throws GatewayException if it cannot be used
     */
    public static void check(GatewayConfig config) {
        final Path file = config.get(GatewaySettings.WORKERS_FILE);
        if (file == null) {
            return;
        }
        try {
            ConfigFile.workers(file, content(file), config.get(GatewaySettings.MODEL));
        } catch (IOException | IllegalArgumentException e) {
            throw unusable(file, e);
        }
    }

    private static GatewayException unusable(Path file, Exception e) {
        return new GatewayException(
                e instanceof IOException
                        ? "cannot read workers-file " + file + ": " + FailureText.of(e)
                        : "workers-file " + e.getMessage(),
                e);
    }

    private void run() {
        try {
            while (true) {
                Thread.sleep(interval);
                look(false);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    @Override
    public void reload() {
        look(true);
    }

    /**
     * @param atOnce also what is seen for the first time, or was applied before
     */
    synchronized void look(boolean atOnce) {
        try {
            lookAt(atOnce);
        } catch (RuntimeException | Error e) { // of this look: the next one may succeed
            applied = null;
            failed("the workers of " + file + " could not be applied: " + FailureText.of(e), e);
        }
    }

    private void lookAt(boolean atOnce) {
        byte[] content;
        String failure = null;
        try {
            content = content(file);
        } catch (IOException e) {
            failure = "cannot read " + file + ": " + FailureText.of(e);
            content = failure.getBytes(StandardCharsets.UTF_8);
        }
        final boolean settled = Arrays.equals(content, seen);
        seen = content;
        if (!atOnce && (!settled || Arrays.equals(content, applied))) {
            return;
        }
        applied = content;
        if (failure == null) {
            try {
                listener.view(parse(content));
                lastFailure = null;
                return;
            } catch (IllegalArgumentException e) {
                failure = e.getMessage();
            } catch (IOException e) {
                failure = "cannot read " + file + ": " + FailureText.of(e);
            }
        }
        lastFailure = failure;
        listener.failed(failure);
    }

    /** Says once what each look fails with. */
    private void failed(String failure, Throwable cause) {
        if (failure.equals(lastFailure)) {
            return;
        }
        lastFailure = failure;
        LOG.error("the workers of {} could not be applied; it is tried again", file, cause);
        listener.failed(failure);
    }

    private static byte[] content(Path file) throws IOException {
        return ConfiguredFile.read(file, MAX_BYTES);
    }

    private List<DiscoveredWorker> parse(byte[] content) throws IOException {
        return ConfigFile.workers(file, content, model);
    }

    @Override
    public void close() {
        thread.interrupt();
    }
}
