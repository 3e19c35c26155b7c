package io.kvasir.opstreams.kvops;

import java.io.IOException;
import java.nio.file.Path;

/** A file is no KVOPS v1 stream; the message names the file, the byte offset and what is wrong. */
public final class KvopsFormatException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes the error.
     *
     * @param file the file read
     * @param offset byte offset of the field that is wrong
     * @param what what is wrong, with the values
     */
    public KvopsFormatException(Path file, long offset, String what) {
        super(file + ": no KVOPS v1 stream: offset " + offset + ": " + what);
    }
}
