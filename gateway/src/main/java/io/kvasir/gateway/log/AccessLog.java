package io.kvasir.gateway.log;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Path;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;

/**
 * A line for each request that has ended, in a file or on standard output. Requests put entries
 * into a bounded queue and never wait; one thread, the only one that touches the output, writes
 * them. What finds the queue full, or cannot be written, is dropped and counted.
 */
final class AccessLog implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(AccessLog.class);
    private static final int QUEUE_LENGTH = 16_384;
    private static final int BATCH_BYTES = 1 << 16;
    private static final long POLL_MS = 500;
    private static final long CLOSE_MS = 2_000;

    /** How a file is opened, for tests that have it fail. */
    interface Opener {
        OutputStream open() throws IOException;
    }

    private final String name;
    private final Opener opener;
    private final AccessLogFormat format;
    private final BlockingQueue<AccessEntry> queue;
    private final LongAdder dropped = new LongAdder();
    private final AtomicBoolean reopen = new AtomicBoolean();
    private final Thread writer;
    private volatile boolean closed;

    // of the writer's thread
    private final ByteArrayOutputStream batch = new ByteArrayOutputStream(BATCH_BYTES);
    private OutputStream out; // null while it cannot be opened
    private int batchLines;
    private boolean failing;

    AccessLog(String name, AccessLogFormat format, int queueLength, Opener opener)
            throws IOException {
        this.name = name;
        this.opener = opener;
        this.format = format;
        this.queue = new ArrayBlockingQueue<>(queueLength);
        this.out = opener.open();
        this.writer = Thread.ofPlatform().name("kvasir-access-log").daemon().unstarted(this::run);
    }

    /**
     * The log that the configuration asks for.
     *
     * @return null for none
     * @throws GatewayException if the file cannot be opened
     */
    public static AccessLog of(GatewayConfig config) {
        final String target = config.get(GatewaySettings.ACCESS_LOG);
        if (target.equals(GatewaySettings.ACCESS_LOG_OFF)) {
            return null;
        }
        final Opener opener =
                target.equals(GatewaySettings.ACCESS_LOG_STDOUT)
                        ? AccessLog::standardOutput
                        : () -> new FileOutputStream(Path.of(target).toFile(), true);
        try {
            return new AccessLog(
                    target,
                    AccessLogFormat.of(config.get(GatewaySettings.ACCESS_LOG_FORMAT)),
                    QUEUE_LENGTH,
                    opener);
        } catch (IOException e) {
            throw new GatewayException(
                    "cannot write the access log: "
                            + e.getMessage()
                            + "; access-log must be off, stdout or a file in a folder that exists",
                    e);
        }
    }

    private static OutputStream standardOutput() {
        return new FileOutputStream(FileDescriptor.out) {
            @Override
            public void close() {
                // it is the process's
            }
        };
    }

    /** Begins to write. */
    public void start() {
        writer.start();
    }

    /** Has a request written, soon. Does not wait. */
    public void add(AccessEntry entry) {
        if (!queue.offer(entry)) {
            dropped.increment();
        }
    }

    /** Lines that were not written. */
    public long dropped() {
        return dropped.sum();
    }

    /** Opens the file anew: the one of before may have been renamed. */
    public void reopen() {
        reopen.set(true);
    }

    private void run() {
        while (!closed) {
            try {
                final AccessEntry entry = queue.poll(POLL_MS, TimeUnit.MILLISECONDS);
                if (reopen.getAndSet(false)) {
                    openAnew();
                }
                if (entry != null) {
                    write(entry);
                }
            } catch (InterruptedException e) {
                break; // it is closed
            }
        }
        for (AccessEntry entry = queue.poll(); entry != null; entry = queue.poll()) {
            write(entry);
        }
        closeOutput();
    }

    private void write(AccessEntry entry) {
        format.write(entry, batch);
        batchLines++;
        if (queue.isEmpty() || batch.size() >= BATCH_BYTES) {
            flush();
        }
    }

    private void flush() {
        try {
            if (out == null) {
                out = opener.open();
            }
            batch.writeTo(out);
            out.flush();
            if (failing) {
                failing = false;
                LOG.warn("access log {} is written again", name);
            }
        } catch (IOException e) {
            dropped.add(batchLines);
            closeOutput();
            if (!failing) {
                failing = true;
                LOG.warn(
                        "access log {} cannot be written, its lines are dropped and counted: {}",
                        name,
                        e.getMessage());
            }
        }
        batch.reset();
        batchLines = 0;
    }

    private void openAnew() {
        try {
            final OutputStream opened = opener.open();
            closeOutput();
            out = opened;
        } catch (IOException e) {
            LOG.warn("access log {} was not opened anew: {}", name, e.getMessage());
        }
    }

    private void closeOutput() {
        final OutputStream closing = out;
        out = null;
        if (closing == null) {
            return;
        }
        try {
            closing.close();
        } catch (IOException e) {
            LOG.debug("access log {} was not closed: {}", name, e.getMessage());
        }
    }

    /** Writes what is in the queue, as far as that does not take long. */
    @Override
    public void close() {
        closed = true;
        if (writer.getState() == Thread.State.NEW) {
            closeOutput();
            return;
        }
        writer.interrupt();
        try {
            writer.join(CLOSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
