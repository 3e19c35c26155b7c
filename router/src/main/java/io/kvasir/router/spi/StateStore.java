package io.kvasir.router.spi;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;

/**
 * Keeps named objects, such as snapshots, over restarts. Many may read; one at a time, the holder
 * of the lock, may change something.
 *
 * <p>An object is put as a whole or not at all, whatever becomes of the process or the connection
 * meanwhile: a reader finds the object that was there before, or the new one. Objects are not
 * changed, but replaced under the same name.
 *
 * <p>Names are 1 to {@value #MAX_NAME} small letters, digits, dots and dashes, a letter or digit
 * first. All methods may be called by any thread; they may wait for disks and networks.
 */
public interface StateStore extends AutoCloseable {
    /** Longest name. */
    int MAX_NAME = 100;

    /** Writes the content of an object. */
    @FunctionalInterface
    interface Content {
        /**
         * Called once, by the thread that puts the object. What it throws is thrown by {@link
         * StateStore#put}, and nothing has changed then.
         *
         * @param out where to; not to be closed
         * @throws IOException if there is nothing to put after all, or it cannot be written
         */
        void writeTo(OutputStream out) throws IOException;
    }

    /**
     * Tries to become the one that may change something. Does not wait.
     *
     * @return whether this store has the lock, now or since earlier
     * @throws IOException if the store cannot be reached
     */
    boolean lock() throws IOException;

    /**
     * Puts an object, in place of one of the same name. When this returns, the object is durable
     * and its bytes have been read back and are those that were written.
     *
     * @throws IOException if that is not so; nothing has changed then
     * @throws IllegalArgumentException if the name is none
     * @throws IllegalStateException if this store has not the lock
     */
    void put(String name, Content content) throws IOException;

    /**
     * Opens an object.
     *
     * @param offset first byte wanted; beyond the end there are none
     * @return its bytes, to be closed; null if there is no such object. An object that is replaced
     *     or deleted meanwhile is read to its end, or the read fails
     * @throws IOException if the store cannot be reached
     * @throws IllegalArgumentException if the name is none, or the offset is negative
     */
    InputStream get(String name, long offset) throws IOException;

    /**
     * Names of all objects, in alphabetical order; without any, an empty list.
     *
     * @throws IOException if the store cannot be reached
     */
    List<String> list() throws IOException;

    /**
     * Deletes an object, if it is there.
     *
     * @throws IOException if it may be there still
     * @throws IllegalArgumentException if the name is none
     * @throws IllegalStateException if this store has not the lock
     */
    void delete(String name) throws IOException;

    /**
     * Says which workers an object has that was just put, for stores that show it to others. Does
     * nothing where there are none.
     *
     * @param name of the object
     * @param workers all of them
     * @throws IOException if the others may not see it; the object is there all the same
     */
    default void saved(String name, List<SavedWorker> workers) throws IOException {
        // the object is all there is
    }

    /** Gives the lock back. The objects stay. A second call does nothing. */
    @Override
    void close();

    /**
     * Checks a name.
     *
     * @return the same
     * @throws IllegalArgumentException if it is none
     */
    static String checkName(String name) {
        if (!isName(name)) {
            throw new IllegalArgumentException(
                    "no name of an object: "
                            + name
                            + "; small letters, digits, dots and dashes are allowed");
        }
        return name;
    }

    /** Whether a name may be that of an object. */
    static boolean isName(String name) {
        return name.matches("[a-z0-9][a-z0-9.-]{0," + (MAX_NAME - 1) + "}");
    }
}
