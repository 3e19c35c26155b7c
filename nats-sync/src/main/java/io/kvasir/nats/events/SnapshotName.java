package io.kvasir.nats.events;

import java.time.ZonedDateTime;
import java.util.Comparator;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Name of a snapshot: which stream it is of, and the message that every worker in it has at least
 * reached. Names stand in alphabetical order as the snapshots do; what is read from a name counts
 * where the content is damaged.
 *
 * <pre>
 *   plane-MADE-SEQUENCE.snapshot     MADE: when the stream was made, in ns since 1970
 *                                    both with 19 digits
 * </pre>
 *
 * @param position of the message
 */
record SnapshotName(StreamPosition position) {
    /** The one with the latest message first. */
    static final Comparator<SnapshotName> NEWEST_FIRST =
            Comparator.comparing(SnapshotName::toString).reversed();

    private static final Pattern FORM = Pattern.compile("plane-([0-9]{19})-([0-9]{19})\\.snapshot");

    /** Reads a name; null if it is none of a snapshot. */
    static SnapshotName orNull(String object) {
        final Matcher form = FORM.matcher(object);
        if (!form.matches()) {
            return null;
        }
        try {
            return new SnapshotName(
                    new StreamPosition(
                            StreamPosition.made(Long.parseLong(form.group(1))),
                            Long.parseLong(form.group(2))));
        } catch (NumberFormatException e) {
            return null; // above the largest number
        }
    }

    /** Whether it is of a stream that was made then. */
    boolean isOf(ZonedDateTime made) {
        return position.isOf(made);
    }

    /** Number of the message. */
    long sequence() {
        return position.sequence();
    }

    /** Name of the object. */
    @Override
    public String toString() {
        return String.format(
                Locale.ROOT,
                "plane-%019d-%019d.snapshot",
                StreamPosition.store(position.made()),
                position.sequence());
    }
}
