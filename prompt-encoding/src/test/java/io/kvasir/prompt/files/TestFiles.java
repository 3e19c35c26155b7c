package io.kvasir.prompt.files;

import java.io.IOException;
import java.io.InputStream;

/** Files of this room's tests. */
public final class TestFiles {
    private static final String ROOT = "/io/kvasir/prompt/";

    private TestFiles() {}

    /**
     * Reads one.
     *
     * @param path below this room's folder of resources
     */
    public static byte[] read(String path) throws IOException {
        try (InputStream in = TestFiles.class.getResourceAsStream(ROOT + path)) {
            if (in == null) {
                throw new IOException(ROOT + path + " is not on the class path");
            }
            return in.readAllBytes();
        }
    }
}
