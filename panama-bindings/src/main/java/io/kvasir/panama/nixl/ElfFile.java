package io.kvasir.panama.nixl;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/**
 * Checks a shared library before the loader does. The loader maps segments without comparing them
 * with the length of the file, so a library that was cut short kills the process with SIGBUS
 * instead of failing to load.
 *
 * <pre>
 *   file     0       4     5     6        16     18        32        54          56       64
 *            +-------+-----+-----+--------+------+-----+---+---------+---+-------+--------+
 *            | magic |class| data| ...    | type | mach|...| phoff   |...| phsize| phnum ...|
 *            +-------+-----+-----+--------+------+-----+---+---------+---+-------+--------+
 *   program  0       4       8          16                32          40               56
 *   header   +-------+-------+----------+-----------------+-----------+----------------+
 *            | type  | flags | offset   | addresses       | in file   | in memory, ... |
 *            +-------+-------+----------+-----------------+-----------+----------------+
 *   little endian; class 2 = 64 bit, type 3 = shared object, program header type 1 = mapped
 * </pre>
 */
final class ElfFile {
    private static final int MAGIC = 0x464c457f; // 7f 'E' 'L' 'F', read as little endian
    private static final int CLASS_OFFSET = 4;
    private static final int DATA_OFFSET = 5;
    private static final int TYPE_OFFSET = 16;
    private static final int MACHINE_OFFSET = 18;
    private static final int PROGRAM_HEADERS_OFFSET = 32;
    private static final int PROGRAM_HEADER_LENGTH_OFFSET = 54;
    private static final int PROGRAM_HEADER_COUNT_OFFSET = 56;
    private static final int HEADER_LENGTH = 64;

    private static final int PROGRAM_HEADER_LENGTH = 56;
    private static final int SEGMENT_OFFSET_OFFSET = 8;
    private static final int SEGMENT_FILE_LENGTH_OFFSET = 32;
    private static final int MAPPED = 1;

    private static final int SHARED_OBJECT = 3;
    private static final int X86_64 = 62;
    private static final int AARCH64 = 183;

    private ElfFile() {}

    /**
     * Says why a file cannot be loaded as a library by this process. Does not look at the libraries
     * that it needs in turn.
     *
     * @param file any path
     * @return the reason, or empty when the loader may be asked
     */
    static Optional<String> problem(Path file) {
        if (!Files.exists(file)) {
            return Optional.of("no such file");
        }
        if (!Files.isRegularFile(file)) {
            return Optional.of("not a regular file");
        }
        try (FileChannel channel = FileChannel.open(file)) {
            return problem(channel);
        } catch (IOException e) {
            return Optional.of("cannot be read: " + e);
        }
    }

    private static Optional<String> problem(FileChannel channel) throws IOException {
        final long length = channel.size();
        final ByteBuffer header = read(channel, 0, HEADER_LENGTH);
        if (header.limit() < HEADER_LENGTH || header.getInt(0) != MAGIC) {
            return Optional.of("not a shared library: no ELF header in its " + length + " bytes");
        }
        if (header.get(CLASS_OFFSET) != 2 || header.get(DATA_OFFSET) != 1) {
            return Optional.of("not a 64-bit little-endian library");
        }
        if (header.getShort(TYPE_OFFSET) != SHARED_OBJECT) {
            return Optional.of("not a shared library: ELF type " + header.getShort(TYPE_OFFSET));
        }
        final int machine = Short.toUnsignedInt(header.getShort(MACHINE_OFFSET));
        final String arch = System.getProperty("os.arch");
        if (machine != machineOf(arch)) {
            return Optional.of("built for ELF machine " + machine + ", this process is " + arch);
        }
        return cutShort(channel, header, length);
    }

    private static Optional<String> cutShort(FileChannel channel, ByteBuffer header, long length)
            throws IOException {
        final long start = header.getLong(PROGRAM_HEADERS_OFFSET);
        final int count = Short.toUnsignedInt(header.getShort(PROGRAM_HEADER_COUNT_OFFSET));
        if (Short.toUnsignedInt(header.getShort(PROGRAM_HEADER_LENGTH_OFFSET))
                != PROGRAM_HEADER_LENGTH) {
            return Optional.of("not a shared library: odd program header length");
        }
        long end = 0;
        for (int i = 0; i < count; i++) {
            final long at = start + (long) i * PROGRAM_HEADER_LENGTH;
            if (at < 0 || at > length - PROGRAM_HEADER_LENGTH) {
                return Optional.of(
                        "cut short: program headers lie beyond its " + length + " bytes");
            }
            final ByteBuffer segment = read(channel, at, PROGRAM_HEADER_LENGTH);
            if (segment.getInt(0) == MAPPED) {
                final long offset = segment.getLong(SEGMENT_OFFSET_OFFSET);
                final long inFile = segment.getLong(SEGMENT_FILE_LENGTH_OFFSET);
                if (offset < 0 || inFile < 0 || offset > Long.MAX_VALUE - inFile) {
                    return Optional.of("damaged: a segment has a length out of range");
                }
                end = Math.max(end, offset + inFile);
            }
        }
        if (end == 0 || end > length) {
            return Optional.of("cut short: has " + length + " bytes, maps " + end);
        }
        return Optional.empty();
    }

    private static int machineOf(String arch) {
        return switch (arch) {
            case "amd64" -> X86_64;
            case "aarch64" -> AARCH64;
            default -> -1;
        };
    }

    /** Returns up to {@code length} bytes from {@code position}; fewer where the file ends. */
    private static ByteBuffer read(FileChannel channel, long position, int length)
            throws IOException {
        final ByteBuffer bytes = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
        long at = position;
        while (bytes.hasRemaining()) {
            final int count = channel.read(bytes, at);
            if (count < 0) {
                break;
            }
            at += count;
        }
        return bytes.flip();
    }
}
