package io.kvasir.core.memory;

import java.io.IOException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * Whether disks have room for files that are to be made one after the other by {@link MappedFile},
 * and all to stay. Makes none of them. One thread.
 */
public final class DiskRoom {
    private final Usable usable;
    private final Map<FileStore, Long> taken = new HashMap<>();

    /** How many bytes this process may take of a disk. */
    public interface Usable {
        /** As {@link FileStore#getUsableSpace} says. */
        long bytes(FileStore disk) throws IOException;
    }

    /** Of the disks of this machine as they are now. */
    public DiskRoom() {
        this(FileStore::getUsableSpace);
    }

    /** Of disks whose room is given. */
    public DiskRoom(Usable usable) {
        this.usable = usable;
    }

    /**
     * Has a file counted.
     *
     * @param file need not be there, nor its folder
     * @param length bytes that it is made with
     * @param replaced files that are deleted for it, and may be there
     * @throws IOException if there is no room, as when it is made
     */
    public void take(Path file, long length, Path... replaced) throws IOException {
        long needed = length;
        for (Path old : replaced) {
            needed -= Files.isRegularFile(old) ? Files.size(old) : 0;
        }
        final FileStore disk = Files.getFileStore(existing(file));
        final long left = usable.bytes(disk) - taken.getOrDefault(disk, 0L);
        if (left < needed) {
            throw DiskSpace.full(file, length, left);
        }
        taken.merge(disk, needed, Long::sum);
    }

    private static Path existing(Path file) {
        Path path = file.toAbsolutePath();
        while (!Files.exists(path) && path.getParent() != null) {
            path = path.getParent();
        }
        return path;
    }
}
