package io.kvasir.gateway.log;

import io.kvasir.core.memory.FolderProbe;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.ByteArrayOutputStream;
import java.io.FileDescriptor;
import java.io.FileNotFoundException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
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
    private static final int FILE_TYPE = 0170000; // of a Unix file's mode
    private static final int NAMED_PIPE = 0010000;

    /** The file, pipe or terminal that it is, where the system has such a name. */
    private static final Path STANDARD_OUTPUT = Path.of("/dev/stdout");

    /** How a file is opened, for tests that have it fail. */
    interface Opener {
        OutputStream open() throws IOException;
    }

    private final String name;
    private final Opener opener;
    private final AccessLogFormat format;
    private final BlockingQueue<AccessEntry> queue;
    private final LongAdder dropped;
    private final AtomicBoolean reopen = new AtomicBoolean();
    private final Thread writer;
    private volatile boolean closed;

    // of the writer's thread
    private final ByteArrayOutputStream batch = new ByteArrayOutputStream(BATCH_BYTES);
    private OutputStream out; // null while it cannot be opened
    private int batchLines;
    private boolean failing;

    /**
     * Opens the output.
     *
     * @param dropped counts lines that are not written
     * @throws IOException if it cannot be opened
     */
    AccessLog(
            String name, AccessLogFormat format, int queueLength, Opener opener, LongAdder dropped)
            throws IOException {
        this.name = name;
        this.dropped = dropped;
        this.opener = opener;
        this.format = format;
        this.queue = new ArrayBlockingQueue<>(queueLength);
        this.out = opener.open();
        this.writer = Thread.ofPlatform().name("kvasir-access-log").daemon().unstarted(this::run);
    }

    /**
     * The log that the configuration asks for.
     *
     * @param dropped counts lines that are not written
     * @return null for none
     * @throws GatewayException if the file cannot be opened
     */
    public static AccessLog of(GatewayConfig config, LongAdder dropped) {
        final String target = config.get(GatewaySettings.ACCESS_LOG);
        if (target.equals(GatewaySettings.ACCESS_LOG_OFF)) {
            return null;
        }
        final Opener opener =
                target.equals(GatewaySettings.ACCESS_LOG_STDOUT)
                        ? AccessLog::standardOutput
                        : () -> append(Path.of(target));
        try {
            return new AccessLog(
                    target,
                    AccessLogFormat.of(config.get(GatewaySettings.ACCESS_LOG_FORMAT)),
                    QUEUE_LENGTH,
                    opener,
                    dropped);
        } catch (IOException e) {
            throw refusal(e);
        }
    }

    private static GatewayException refusal(IOException cause) {
        return new GatewayException(
                "cannot write the access log: "
                        + cause.getMessage()
                        + "; access-log must be off, stdout or a file in a folder that exists",
                cause);
    }

    /**
     * Checks that the log that a configuration asks for can be opened. Nothing is written, and no
     * file is left that was not there.
     *
     * @throws GatewayException if not
     */
    static void check(GatewayConfig config) {
        final String target = config.get(GatewaySettings.ACCESS_LOG);
        if (target.equals(GatewaySettings.ACCESS_LOG_OFF)
                || target.equals(GatewaySettings.ACCESS_LOG_STDOUT)) {
            return;
        }
        final Path file = Path.of(target);
        try {
            refusePipe(file);
            if (Files.exists(file)) {
                new FileOutputStream(file.toFile(), true).close(); // nothing of it is changed
            } else {
                FolderProbe.checkFile(file);
            }
        } catch (FileSystemException e) {
            throw refusal(new FileNotFoundException(file + " (" + systemWords(e) + ")"));
        } catch (IOException e) {
            throw refusal(e);
        }
    }

    /** As they are in what opening a file to write says. */
    private static String systemWords(FileSystemException refused) {
        return switch (refused) {
            case AccessDeniedException _ -> "Permission denied";
            case NoSuchFileException _ -> "No such file or directory";
            default -> refused.getReason();
        };
    }

    /** Opens a file behind its last line, which is ended if a full disk has cut it. */
    private static OutputStream append(Path file) throws IOException {
        refusePipe(file);
        return behindLastLine(new FileOutputStream(file.toFile(), true), file);
    }

    private static OutputStream behindLastLine(OutputStream out, Path file) throws IOException {
        try {
            if (isCut(file)) {
                out.write('\n');
            }
        } catch (IOException e) {
            out.close();
            throw e;
        }
        return out;
    }

    private static boolean isCut(Path file) throws IOException {
        if (!Files.isRegularFile(file) || !Files.isReadable(file)) {
            return false;
        }
        try (RandomAccessFile read = new RandomAccessFile(file.toFile(), "r")) {
            final long last = read.length() - 1;
            if (last < 0) {
                return false;
            }
            read.seek(last);
            return read.read() != '\n';
        }
    }

    /** Opening a named pipe waits for its reader; those of the process itself are open. */
    private static void refusePipe(Path file) throws IOException {
        if (Files.exists(file)
                && !file.startsWith("/dev")
                && !file.startsWith("/proc")
                && ((int) Files.getAttribute(file, "unix:mode") & FILE_TYPE) == NAMED_PIPE) {
            throw new IOException(file + " is no regular file");
        }
    }

    /** Where it is a file, its last line is ended likewise. */
    private static OutputStream standardOutput() throws IOException {
        final OutputStream out =
                new FileOutputStream(FileDescriptor.out) {
                    @Override
                    public void close() {
                        // it is the process's
                    }
                };
        return behindLastLine(out, STANDARD_OUTPUT);
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
