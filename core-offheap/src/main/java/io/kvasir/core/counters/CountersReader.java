package io.kvasir.core.counters;

import io.kvasir.core.memory.OffHeap;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/**
 * Reads the counters and errors that a {@link CountersFile} keeps in a folder, in this or another
 * process, running or ended. A file with damaged contents gives an error or nonsense, never a
 * crash. Any thread; not after {@link #close}.
 */
public final class CountersReader implements AutoCloseable {
    /** Takes one counter. */
    @FunctionalInterface
    public interface CounterVisitor {
        /**
         * A counter.
         *
         * @param counter its number
         * @param type what its value means
         * @param label its name
         * @param value at the moment of reading
         */
        void counter(int counter, int type, String label, long value);
    }

    /** Takes one distinct error. */
    @FunctionalInterface
    public interface ErrorVisitor {
        /**
         * An error.
         *
         * @param count how often it was observed
         * @param firstMs when it was observed first, milliseconds since the epoch
         * @param lastMs when it was observed last
         * @param text its stack trace
         */
        void error(int count, long firstMs, long lastMs, String text);
    }

    private final OffHeap memory;
    private final int counters;

    private CountersReader(OffHeap memory, int counters) {
        this.memory = memory;
        this.counters = counters;
    }

    /**
     * Opens the file of a folder.
     *
     * @throws IOException if there is none, or it is no such file
     */
    public static CountersReader open(Path folder) throws IOException {
        final Path path = folder.resolve(CountersFile.FILE);
        try (FileChannel file = FileChannel.open(path, StandardOpenOption.READ)) {
            final long size = file.size();
            if (size < CountersDescriptor.HEADER_LENGTH) {
                throw new IOException(path + " is no file of counters: " + size + " bytes");
            }
            final OffHeap memory = OffHeap.map(file, FileChannel.MapMode.READ_ONLY, size);
            try {
                return new CountersReader(memory, checkedCounters(path, memory));
            } catch (Throwable t) {
                memory.close();
                throw t;
            }
        }
    }

    private static int checkedCounters(Path path, OffHeap memory) throws IOException {
        final long magic = memory.getLongAcquire(CountersDescriptor.MAGIC_OFFSET);
        if (magic != CountersDescriptor.MAGIC) {
            throw new IOException(
                    path + " is no file of counters of this version: it begins with " + magic);
        }
        final long metadata = memory.getInt(CountersDescriptor.METADATA_LENGTH_OFFSET);
        final long values = memory.getInt(CountersDescriptor.VALUES_LENGTH_OFFSET);
        final long errors = memory.getInt(CountersDescriptor.ERRORS_LENGTH_OFFSET);
        final long counters = metadata / CountersDescriptor.METADATA_LENGTH;
        if (counters < 1
                || metadata != counters * CountersDescriptor.METADATA_LENGTH
                || values != counters * CountersDescriptor.VALUE_LENGTH
                || errors < 0
                || memory.length()
                        != CountersDescriptor.HEADER_LENGTH + metadata + values + errors) {
            throw new IOException(
                    path
                            + " is damaged: metadata="
                            + metadata
                            + ", values="
                            + values
                            + ", errors="
                            + errors
                            + ", bytes="
                            + memory.length());
        }
        return (int) counters;
    }

    /** Id of the process that has made the file. */
    public long processId() {
        return memory.getLong(CountersDescriptor.PROCESS_OFFSET);
    }

    /** When the file was made, milliseconds since the epoch. */
    public long startedMs() {
        return memory.getLong(CountersDescriptor.STARTED_OFFSET);
    }

    /** When the values were set last, milliseconds since the epoch. */
    public long writtenMs() {
        return memory.getLongAcquire(CountersDescriptor.WRITTEN_OFFSET);
    }

    /** Whether the writer has ended in order. One that has died has not. */
    public boolean isClosed() {
        return memory.getIntAcquire(CountersDescriptor.STATE_OFFSET) == CountersDescriptor.CLOSED;
    }

    /** Visits every counter that is allocated, by number. */
    public void counters(CounterVisitor visitor) {
        for (int i = 0; i < counters; i++) {
            final int state = state(i);
            if (state == CountersDescriptor.UNUSED) {
                return;
            }
            if (state == CountersDescriptor.ALLOCATED) {
                visit(i, visitor);
            }
        }
    }

    private int state(int counter) {
        return memory.getIntAcquire(
                CountersDescriptor.metadataOffset(counter)
                        + CountersDescriptor.COUNTER_STATE_OFFSET);
    }

    private void visit(int counter, CounterVisitor visitor) {
        final long offset = CountersDescriptor.metadataOffset(counter);
        final int type = memory.getInt(offset + CountersDescriptor.TYPE_OFFSET);
        final int length =
                Math.clamp(
                        memory.getIntAcquire(offset + CountersDescriptor.LABEL_LENGTH_OFFSET),
                        0,
                        CountersDescriptor.MAX_LABEL_LENGTH);
        final String label = text(offset + CountersDescriptor.LABEL_OFFSET, length);
        final long value = memory.getLongAcquire(CountersDescriptor.valueOffset(counters, counter));
        visitor.counter(counter, type, label, value);
    }

    /** Visits every distinct error, in the order of their first observation. */
    public void errors(ErrorVisitor visitor) {
        long offset = CountersDescriptor.errorsOffset(counters);
        while (offset + CountersDescriptor.ERROR_TEXT_OFFSET <= memory.length()) {
            final int length =
                    memory.getIntAcquire(offset + CountersDescriptor.ERROR_LENGTH_OFFSET);
            if (length < CountersDescriptor.ERROR_TEXT_OFFSET
                    || length > memory.length() - offset) {
                return;
            }
            final long lastMs =
                    memory.getLongAcquire(offset + CountersDescriptor.ERROR_LAST_OFFSET);
            visitor.error(
                    memory.getIntAcquire(offset + CountersDescriptor.ERROR_COUNT_OFFSET),
                    memory.getLong(offset + CountersDescriptor.ERROR_FIRST_OFFSET),
                    lastMs,
                    text(
                            offset + CountersDescriptor.ERROR_TEXT_OFFSET,
                            length - CountersDescriptor.ERROR_TEXT_OFFSET));
            offset += CountersDescriptor.alignedError(length);
        }
    }

    private String text(long offset, int length) {
        final byte[] bytes = new byte[length];
        for (int i = 0; i < length; i++) {
            bytes[i] = memory.getByte(offset + i);
        }
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** Gives the mapping back. */
    @Override
    public void close() {
        memory.close();
    }
}
