package io.kvasir.cli.cluster;

import io.kvasir.nats.events.EventSubjects;
import io.kvasir.pipeline.wire.RouterMessage;
import io.nats.client.Connection;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamSubscription;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.PushSubscribeOptions;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Reads the stream of events from its beginning, to say which events its servers do not have. */
final class StreamContents {
    private static final Duration SILENCE = Duration.ofSeconds(2);

    private final EventSubjects names;
    private final Map<Long, Long> lastOfWorkers = new TreeMap<>();
    private final List<String> missing = new ArrayList<>();

    private StreamContents(EventSubjects names) {
        this.names = names;
    }

    /**
     * Events whose numbers are missing between others of the same worker.
     *
     * @param url of one of the servers
     * @param names of the stream
     * @return in words
     */
    static String missing(String url, EventSubjects names) {
        final StreamContents contents = new StreamContents(names);
        try {
            final Connection connection = Nats.connect(url);
            try {
                contents.read(connection);
            } finally {
                connection.close();
            }
        } catch (IOException | JetStreamApiException e) {
            return "the stream cannot be read: " + e.getMessage();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return "interrupted";
        }
        return "last events in the stream: "
                + contents.lastOfWorkers
                + ", not there: "
                + contents.missing;
    }

    private void read(Connection connection)
            throws IOException, JetStreamApiException, InterruptedException {
        final JetStreamSubscription all =
                connection
                        .jetStream()
                        .subscribe(
                                names.streamSubjects(),
                                PushSubscribeOptions.builder().stream(names.stream())
                                        .ordered(true)
                                        .build());
        final RouterMessage events = new RouterMessage();
        for (Message next = all.nextMessage(SILENCE);
                next != null;
                next = all.nextMessage(SILENCE)) {
            events.wrap(next.getData(), 0, next.getData().length);
            while (events.next()) {
                follow(events.workerId(), events.eventId(), next.metaData().streamSequence());
            }
        }
    }

    private void follow(long worker, long event, long inStream) {
        final Long last = lastOfWorkers.get(worker);
        if (last != null && event > last + 1) {
            missing.add((last + 1) + ".." + (event - 1) + " of " + worker + " before #" + inStream);
        }
        if (last == null || event > last || event <= 1) { // else once more, or a new life
            lastOfWorkers.put(worker, event);
        }
    }
}
