package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.Optional;

/** What Linux says of the mappings of this process. */
public final class MemoryMappings {
    private MemoryMappings() {}

    /**
     * A line of {@code /proc/self/smaps}, of the mapping that an address lies in.
     *
     * @param name of the line, with its colon
     * @return what follows the name; empty where the kernel does not say it
     */
    public static Optional<String> of(long address, String name) throws IOException {
        boolean inside = false;
        for (String line : Files.readAllLines(Path.of("/proc/self/smaps"))) {
            final String first = line.substring(0, line.indexOf(' '));
            if (!first.endsWith(":")) {
                final int dash = first.indexOf('-');
                inside =
                        HexFormat.fromHexDigitsToLong(first.substring(0, dash)) <= address
                                && address
                                        < HexFormat.fromHexDigitsToLong(first.substring(dash + 1));
            } else if (inside && first.equals(name)) {
                return Optional.of(line.substring(name.length()).strip());
            }
        }
        return Optional.empty();
    }
}
