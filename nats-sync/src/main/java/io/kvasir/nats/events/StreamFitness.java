package io.kvasir.nats.events;

import io.nats.client.api.DiscardPolicy;
import io.nats.client.api.RetentionPolicy;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.api.StreamInfo;
import io.nats.client.api.StreamState;

import java.util.List;
import java.util.Locale;

/** Whether a stream that others may have made can carry the events of a component. Stateless. */
final class StreamFitness {
    /** All events have one subject, so that fewer are lost to whatever reads a little late. */
    private static final int FEWEST_OF_A_SUBJECT = 1_000;

    private StreamFitness() {}

    /**
     * What a stream does to events, as it is configured and filled now.
     *
     * @param names whose events
     * @param used as in the other one
     * @return in words, with what to do; empty where nothing is wrong
     */
    static String problem(StreamInfo stream, EventSubjects names, List<String> used) {
        final String form = problem(stream.getConfiguration(), names, used);
        if (!form.isEmpty()) {
            return form;
        }
        final String full = full(stream.getConfiguration(), stream.getStreamState());
        return full.isEmpty()
                ? ""
                : "stream "
                        + names.stream()
                        + " is full and refuses new events: "
                        + full
                        + ", and it discards none of the old ones (discard: new); raise that, or"
                        + " have it discard them: nats stream edit "
                        + names.stream()
                        + " --discard old";
    }

    /** The limit that it has come to, where it then refuses what is new; empty if it has not. */
    private static String full(StreamConfiguration stream, StreamState state) {
        if (stream.getDiscardPolicy() != DiscardPolicy.New) {
            return "";
        }
        final long messages = state.getMsgCount();
        final long bytes = state.getByteCount();
        if (stream.getMaxMsgs() > 0 && messages >= stream.getMaxMsgs()) {
            return "max_msgs is " + stream.getMaxMsgs();
        }
        // no room for one of the usual length
        return stream.getMaxBytes() > 0
                        && messages > 0
                        && stream.getMaxBytes() - bytes < bytes / messages
                ? "max_bytes is " + stream.getMaxBytes()
                : "";
    }

    /**
     * What a stream's configuration does to events.
     *
     * @param names whose events
     * @param used subjects of which one must come to the stream: the one that is published to, or
     *     those that publishers may use
     * @return in words, with what to do; empty where nothing is wrong
     */
    static String problem(StreamConfiguration stream, EventSubjects names, List<String> used) {
        final String why = why(stream, used);
        return why.isEmpty()
                ? ""
                : "stream "
                        + names.stream()
                        + ", as others have made it, "
                        + why
                        + "; delete it, so that it is made anew, or use another nats-component";
    }

    private static String why(StreamConfiguration stream, List<String> used) {
        if (stream.getMirror() != null) {
            return "is a mirror of "
                    + stream.getMirror().getName()
                    + ": what is published to "
                    + used.getFirst()
                    + " does not come";
        }
        if (isWithoutSources(stream)
                && stream.getSubjects().stream()
                        .noneMatch(pattern -> used.stream().anyMatch(s -> matches(pattern, s)))) {
            return "does not take "
                    + used.getFirst()
                    + ", but "
                    + String.join(", ", stream.getSubjects());
        }
        if (stream.getRetentionPolicy() != RetentionPolicy.Limits) {
            return "drops events that one gateway has read: its retention is "
                    + stream.getRetentionPolicy()
                            .name()
                            .replace("WorkQueue", "work-queue")
                            .toLowerCase(Locale.ROOT);
        }
        final long most = stream.getMaxMsgsPerSubject();
        return most > 0 && most < FEWEST_OF_A_SUBJECT
                ? "keeps " + most + " message of a subject, and all events have one subject"
                : "";
    }

    private static boolean isWithoutSources(StreamConfiguration stream) {
        return stream.getSources() == null || stream.getSources().isEmpty();
    }

    /** As NATS matches: a star is one part, a greater-than sign all that follow. */
    private static boolean matches(String pattern, String subject) {
        final String[] wanted = pattern.split("\\.", -1);
        final String[] parts = subject.split("\\.", -1);
        for (int i = 0; i < wanted.length; i++) {
            if (i == parts.length) {
                return false;
            }
            if (wanted[i].equals(">")) {
                return true;
            }
            if (!wanted[i].equals("*") && !wanted[i].equals(parts[i])) {
                return false;
            }
        }
        return wanted.length == parts.length;
    }
}
