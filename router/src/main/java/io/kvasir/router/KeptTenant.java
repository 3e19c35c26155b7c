package io.kvasir.router;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Whose the blocks of a slot are, as it is kept with the slot.
 *
 * <pre>
 *   RANK/NAME           a worker with events of its own
 *   plane:ID/RANK       what an event plane calls it
 * </pre>
 *
 * @param text the label
 * @param planeOrNull what the event plane calls it; null if it is on none
 */
record KeptTenant(String text, EventPlaneWorker planeOrNull) {
    private static final String PLANE = "plane:";
    private static final Pattern OF_PLANE = Pattern.compile(PLANE + "([0-9]{1,20})/([0-9]{1,10})");
    private static final Pattern NAMED = Pattern.compile("[0-9]{1,10}/.*", Pattern.DOTALL);

    static KeptTenant of(WorkerRegistry.NamedRank worker) {
        return new KeptTenant(worker.dpRank() + "/" + worker.name(), null);
    }

    static KeptTenant of(EventPlaneWorker worker) {
        return new KeptTenant(PLANE + worker, worker);
    }

    /** Reads a label; null if it is none of these. */
    static KeptTenant orNull(byte[] label) {
        final String text = new String(label, StandardCharsets.UTF_8);
        final Matcher plane = OF_PLANE.matcher(text);
        try {
            if (plane.matches()) {
                return of(
                        new EventPlaneWorker(
                                Long.parseUnsignedLong(plane.group(1)),
                                Integer.parseInt(plane.group(2))));
            }
        } catch (NumberFormatException e) {
            return null; // above the largest number
        }
        return NAMED.matcher(text).matches() ? new KeptTenant(text, null) : null;
    }

    byte[] label() {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public String toString() {
        return text;
    }
}
