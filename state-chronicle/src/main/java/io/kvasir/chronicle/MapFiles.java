package io.kvasir.chronicle;

import net.openhft.chronicle.map.ChronicleMap;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.CRC32C;

/**
 * The files of one map in a folder. The one with the highest number counts; a new one is made when
 * that is damaged, unfinished, another user's, or given up.
 *
 * <pre>
 * NAME-vVERSION-ENTRIES-NUMBER.map      of Chronicle Map
 * NAME-vVERSION-ENTRIES-NUMBER.map.ok   written when the first is complete: layout, length, checksum of its header
 * NAME.lock                             held while one is opened or made
 * </pre>
 */
final class MapFiles {
    private static final String SUFFIX = ".map";
    private static final String COMPLETE = ".ok";

    /** Chronicle Map wants one part in so many of a file's length beside it. */
    private static final int SPARE = 10;

    // of Chronicle Map's file: checksum of the header (8), size word (4), header
    private static final int SIZE_WORD_OFFSET = 8;
    private static final int HEADER_OFFSET = 12;
    private static final int SIZE_MASK = (1 << 30) - 1;
    private static final int MOST_HEADER_BYTES = 1 << 16;

    private final SharedFolder folder;
    private final Path path;
    private final MapLayout layout;

    /** An opened map, its file, and what no other file of that name has while it is open. */
    record Opened(ChronicleMap<byte[], byte[]> map, Path file, Object key) {
        /** Whether its file is there still, and no other one of its name. */
        boolean isThere() {
            try {
                return key.equals(keyOf(file));
            } catch (IOException e) {
                return false;
            }
        }
    }

    MapFiles(Path path, MapLayout layout) throws IOException {
        this.path = path;
        this.folder = new SharedFolder(path);
        this.layout = layout;
    }

    /**
     * Opens the newest map, or makes one.
     *
     * @param givenUp key of a file that is not to be opened again; null for none
     * @throws IOException if none can be opened or made
     */
    Opened open(Object givenUp) throws IOException {
        prepare();
        return folder.exclusively(layout.name() + ".lock", () -> openLocked(givenUp));
    }

    private Opened openLocked(Object givenUp) throws IOException {
        final List<Path> found = found();
        final Path newest = found.isEmpty() ? null : found.getLast();
        if (newest != null && !keyOf(newest).equals(givenUp) && isWhole(newest)) {
            try {
                return new Opened(map(newest), newest, keyOf(newest));
            } catch (IOException e) {
                // damaged after its header: a new one replaces it
            }
        }
        final long number = newest == null ? 0 : number(newest) + 1;
        for (Path old : found) {
            if (!Files.exists(completion(old))) { // its process has ended, and it takes room
                Files.deleteIfExists(old);
            }
        }
        final Opened made = make(folder.file(layout.prefix() + number + SUFFIX));
        for (Path old : found) { // processes that map them have them until they look again
            Files.deleteIfExists(old);
            Files.deleteIfExists(completion(old));
        }
        return made;
    }

    private static Object keyOf(Path file) throws IOException {
        return Files.readAttributes(file, BasicFileAttributes.class).fileKey();
    }

    /** Makes a map. Nothing is left of one that cannot be made. */
    private Opened make(Path file) throws IOException {
        Files.createFile(file, SharedFolder.ownerOnly());
        ChronicleMap<byte[], byte[]> map = null;
        try {
            map = map(file);
            complete(file);
            return new Opened(map, file, keyOf(file));
        } catch (Throwable t) {
            if (map != null) {
                map.close();
            }
            Files.deleteIfExists(unfinished(file));
            Files.deleteIfExists(file); // and the room that it has
            throw t;
        }
    }

    private List<Path> found() throws IOException {
        try (Stream<Path> all = Files.list(path)) {
            return new ArrayList<>(
                    all.filter(file -> number(file) >= 0)
                            .sorted(Comparator.comparingLong(this::number))
                            .toList());
        }
    }

    /** The number in a file's name; -1 if it is none of these. */
    private long number(Path file) {
        final String name = file.getFileName().toString();
        if (!name.startsWith(layout.prefix()) || !name.endsWith(SUFFIX)) {
            return -1;
        }
        final String digits =
                name.substring(layout.prefix().length(), name.length() - SUFFIX.length());
        return digits.matches("[0-9]{1,18}") ? Long.parseLong(digits) : -1;
    }

    private static Path completion(Path file) {
        return file.resolveSibling(file.getFileName() + COMPLETE);
    }

    private static Path unfinished(Path file) {
        return file.resolveSibling(file.getFileName() + COMPLETE + ".tmp");
    }

    private void complete(Path file) throws IOException {
        final Path unfinished = unfinished(file);
        Files.deleteIfExists(unfinished);
        Files.createFile(unfinished, SharedFolder.ownerOnly());
        Files.writeString(unfinished, description(file, Files.size(file)));
        Files.move(unfinished, completion(file), StandardCopyOption.ATOMIC_MOVE);
    }

    private String description(Path file, long bytes) throws IOException {
        return layout + " header=" + headerChecksum(file) + " bytes=" + bytes + "\n";
    }

    private boolean isWhole(Path file) throws IOException {
        final Path complete = completion(file);
        if (!Files.isRegularFile(complete) || !folder.isOwn(file) || !folder.isOwn(complete)) {
            return false;
        }
        final String said = new String(Files.readAllBytes(complete), StandardCharsets.UTF_8);
        final int at = said.lastIndexOf("bytes=");
        final String bytes = at < 0 ? "" : said.substring(at + "bytes=".length()).strip();
        return bytes.matches("[0-9]{1,18}")
                && Files.size(file) >= Long.parseLong(bytes) // further segments make it longer
                && said.equals(description(file, Long.parseLong(bytes)));
    }

    /** Checksum of what Chronicle Map writes once; -1 for none. */
    private static long headerChecksum(Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
            final ByteBuffer sizeWord =
                    ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
            channel.read(sizeWord, SIZE_WORD_OFFSET);
            final int size = sizeWord.getInt(0) & SIZE_MASK;
            if (sizeWord.hasRemaining() || size > MOST_HEADER_BYTES) {
                return -1;
            }
            final ByteBuffer header = ByteBuffer.allocate(HEADER_OFFSET + size);
            while (header.hasRemaining() && channel.read(header, header.position()) > 0) {
                // until it is full or the file ends
            }
            final CRC32C crc = new CRC32C();
            crc.update(header.flip());
            return crc.getValue();
        }
    }

    /** Has Chronicle Map compile what it needs, which takes seconds, before the lock is taken. */
    private static void prepare() throws IOException {
        final List<String> missing = JvmFlags.missing();
        if (!missing.isEmpty()) {
            throw new IOException(
                    "shared memory needs JVM flags that are not set: "
                            + String.join(" ", missing)
                            + " (./kvasir sets them where it is started with"
                            + " --shared-memory-dir or KVASIR_SHARED_MEMORY_DIR)");
        }
        System.setProperty("chronicle.analytics.disable", "true"); // its jar is left out, too
        System.setProperty("chronicle.announcer.disable", "true");
        try {
            ChronicleMap.of(byte[].class, byte[].class)
                    .entries(1)
                    .averageKeySize(1)
                    .averageValueSize(1)
                    .create()
                    .close();
        } catch (RuntimeException | LinkageError | AssertionError e) {
            throw new IOException("Chronicle Map cannot be used: " + e, e);
        }
    }

    private ChronicleMap<byte[], byte[]> map(Path file) throws IOException {
        try {
            return ChronicleMap.of(byte[].class, byte[].class)
                    .name(layout.name())
                    .entries(layout.entries())
                    .averageKeySize(layout.keyBytes())
                    .averageValueSize(layout.valueBytes())
                    .maxBloatFactor(4)
                    .checksumEntries(false) // entries have checksums of their own
                    .skipCloseOnExitHook(true)
                    .createPersistedTo(file.toFile());
        } catch (IOException e) {
            throw hasRoom(file) ? e : noRoom(file, e);
        } catch (RuntimeException | LinkageError | AssertionError e) {
            throw new IOException("Chronicle Map cannot open " + file + ": " + e, e);
        }
    }

    /** Whether a file that has its length, and maybe no blocks, can be given them. */
    private static boolean hasRoom(Path file) throws IOException {
        final long length = Files.size(file);
        return usable(file) > length + length / SPARE;
    }

    private static long usable(Path file) throws IOException {
        return Files.getFileStore(file).getUsableSpace();
    }

    private IOException noRoom(Path file, IOException cause) throws IOException {
        final IOException refusal =
                new FileSystemException(
                        file.toString(),
                        null,
                        "no room on the disk for "
                                + layout.entries()
                                + " entries: bytes="
                                + Files.size(file)
                                + " and a tenth of it, usable="
                                + usable(file));
        refusal.initCause(cause);
        return refusal;
    }
}
