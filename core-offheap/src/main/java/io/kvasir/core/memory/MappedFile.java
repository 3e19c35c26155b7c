package io.kvasir.core.memory;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.util.Set;

/** Makes files that are mapped as a whole. */
public final class MappedFile {
    private MappedFile() {}

    /**
     * Makes a file of zeros that has all of its room on the disk, and maps it. A full disk says so
     * here; at a store to a hole of the file it would end the process. Nothing is left of a file
     * that could not be made.
     *
     * @param file is not there yet
     * @param length bytes, at least 1
     * @param attributes of the file
     * @throws IOException if it cannot be made; where there is no room, with the bytes that are
     *     wanted and usable
     */
    public static OffHeap create(Path file, long length, FileAttribute<?>... attributes)
            throws IOException {
        try (FileChannel channel =
                FileChannel.open(
                        file,
                        Set.of(
                                StandardOpenOption.CREATE_NEW,
                                StandardOpenOption.READ,
                                StandardOpenOption.WRITE),
                        attributes)) {
            try {
                DiskSpace.reserve(file, channel, length);
                return OffHeap.map(channel, FileChannel.MapMode.READ_WRITE, length);
            } catch (Throwable t) {
                Files.deleteIfExists(file); // and the room that it has
                throw t;
            }
        }
    }
}
