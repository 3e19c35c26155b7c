package io.kvasir.pipeline.wire;

/**
 * Cursor over a document of maps, lists and scalars, whatever bytes it is written in. Reads without
 * allocating and never throws on bad input: the first value that does not fit makes the reader
 * <em>failed</em>, and every read from then on answers 0 or {@code false}. One instance per thread.
 *
 * <p>A map or list is read with a count of what is left, which an implementation may not know:
 *
 * <pre>{@code
 * for (long left = in.openMap(); in.hasMore(left); left--) {
 *     if (in.readKey()) { ... in.dataEquals(NAME) ... }
 *     in.skip(); // or read the value
 * }
 * }</pre>
 */
interface DocumentReader {
    /** What {@link #openMap} answers where the document does not say how much there is. */
    long UNSIZED = Long.MAX_VALUE;

    /** Whether everything read so far was there and of the kind asked for. */
    boolean ok();

    /** Index in the wrapped array of the next byte to be read. */
    int position();

    /** Goes to a position that {@link #position()} gave; an earlier failure is forgotten. */
    void position(int newPosition);

    /** Kind of the next value; the position does not move. */
    MsgpackReader.Kind peek();

    /** Reads an integer; an unsigned one above 2<sup>63</sup>−1 comes as the same 64 bits. */
    long readLong();

    /** Reads a string or byte string, for {@link #dataEquals}. */
    boolean readData();

    /** Whether the bytes of the last string read are these. */
    boolean dataEquals(byte[] expected);

    /** Skips one whole value, however deeply nested. */
    boolean skip();

    /** Enters a map: pairs that are left, {@link #UNSIZED} if it does not say; fails elsewhere. */
    long openMap();

    /** Enters a list: elements that are left, {@link #UNSIZED} if it does not say. */
    long openArray();

    /** Whether the map or list has another pair or element; leaves it if not. */
    boolean hasMore(long left);

    /** Reads the key of a pair; false without a failure if it is no string and was skipped. */
    boolean readKey();
}
