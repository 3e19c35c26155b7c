package io.kvasir.core.memory;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Gives a file its blocks before it is mapped. A page of a mapped file that has none is given one
 * by the store that touches it first; where the disk is full, that store ends the process.
 *
 * <p>By {@code posix_fallocate} where native access is enabled and the system is Linux, which takes
 * milliseconds; otherwise, and where the file system refuses that, by writing zeros.
 */
final class DiskSpace {
    private static final int READ_WRITE = 2;
    private static final int NO_SPACE = 28;
    private static final int ZEROS = 1 << 20;
    private static final Optional<Calls> CALLS = calls();

    private record Calls(MethodHandle open, MethodHandle allocate, MethodHandle close) {}

    private DiskSpace() {}

    /**
     * Makes a file as long as asked for, all of it zeros that have their blocks.
     *
     * @param file empty
     * @param channel of the file, for writing
     * @throws IOException if there is no room for it
     */
    static void reserve(Path file, FileChannel channel, long length) throws IOException {
        final long usable = Files.getFileStore(file).getUsableSpace();
        if (usable < length) {
            throw full(file, length, usable);
        }
        final int refused = CALLS.isPresent() ? allocate(CALLS.get(), file, length) : -1;
        if (refused == NO_SPACE) {
            throw full(file, length, usable);
        }
        if (refused != 0) {
            writeZeros(channel, length);
        }
    }

    /** That there is no room for a file. */
    static FileSystemException full(Path file, long length, long usable) {
        return new FileSystemException(
                file.toString(),
                null,
                "no room on the disk: bytes=" + length + ", usable=" + usable);
    }

    static void writeZeros(FileChannel channel, long length) throws IOException {
        final ByteBuffer zeros = ByteBuffer.allocateDirect(ZEROS);
        channel.position(0);
        for (long left = length; left > 0; ) {
            zeros.clear().limit((int) Math.min(ZEROS, left));
            left -= channel.write(zeros);
        }
    }

    /** The error that the system answers, 0 if it has done so; -1 if the file cannot be opened. */
    private static int allocate(Calls calls, Path file, long length) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment path = arena.allocateFrom(file.toAbsolutePath().toString());
            final int descriptor = (int) calls.open.invokeExact(path, READ_WRITE);
            if (descriptor < 0) {
                return -1;
            }
            final int refused = (int) calls.allocate.invokeExact(descriptor, 0L, length);
            final int closed = (int) calls.close.invokeExact(descriptor);
            assert closed == 0;
            return refused;
        } catch (Throwable t) {
            throw new AssertionError("open, posix_fallocate and close do not throw", t);
        }
    }

    private static Optional<Calls> calls() {
        if (!LibcFunctions.areCallable()) {
            return Optional.empty();
        }
        return Optional.of(
                new Calls(
                        LibcFunctions.named(
                                "open",
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.ADDRESS,
                                        ValueLayout.JAVA_INT),
                                Linker.Option.firstVariadicArg(2)),
                        LibcFunctions.named(
                                "posix_fallocate",
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_INT,
                                        ValueLayout.JAVA_LONG,
                                        ValueLayout.JAVA_LONG)),
                        LibcFunctions.named(
                                "close",
                                FunctionDescriptor.of(
                                        ValueLayout.JAVA_INT, ValueLayout.JAVA_INT))));
    }
}
