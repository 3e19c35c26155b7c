package io.kvasir.pipeline.source;

/**
 * How far the messages that an event plane's transport keeps are in an index.
 *
 * @param store which store the transport keeps them in: another number where the store was made
 *     anew, so that its numbers mean other messages; not 0
 * @param upTo number of a message; 0 for before the first
 */
public record PlanePosition(long store, long upTo) {
    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one cannot be
     */
    public PlanePosition {
        if (store == 0 || upTo < 0) {
            throw new IllegalArgumentException(
                    "no position of an event plane: store=" + store + ", upTo=" + upTo);
        }
    }
}
