package io.kvasir.nats.events;

import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.api.DiscardPolicy;
import io.nats.client.api.RetentionPolicy;
import io.nats.client.api.StorageType;
import io.nats.client.api.StreamConfiguration;
import io.nats.client.api.StreamInfo;

import java.io.IOException;
import java.time.Duration;

/** The stream of JetStream that keeps the events of a component's workers for an hour. */
final class EventStreams {
    /** Servers that keep the stream where there is no cluster. */
    static final int ONE_SERVER = 1;

    private static final int MOST_SERVERS = 5;
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final int STREAM_NOT_FOUND = 10059;

    private EventStreams() {}

    /**
     * Gives a number of servers back.
     *
     * @throws IllegalArgumentException if a stream cannot have so many
     */
    static int checkReplicas(int replicas) {
        if (replicas < ONE_SERVER || replicas > MOST_SERVERS) {
            throw new IllegalArgumentException(
                    "replicas=" + replicas + " of a stream, limits are 1.." + MOST_SERVERS);
        }
        return replicas;
    }

    /**
     * Makes the stream unless it is there; one that is there stays as it is.
     *
     * @param replicas servers that keep one that is made
     * @return the stream as it is
     */
    static StreamInfo open(JetStreamManagement management, EventSubjects names, int replicas)
            throws IOException, JetStreamApiException {
        try {
            return management.getStreamInfo(names.stream());
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() != STREAM_NOT_FOUND) {
                throw e;
            }
        }
        return management.addStream(
                StreamConfiguration.builder()
                        .name(names.stream())
                        .subjects(names.streamSubjects())
                        .retentionPolicy(RetentionPolicy.Limits)
                        .storageType(StorageType.File)
                        .discardPolicy(DiscardPolicy.Old)
                        .maxAge(RETENTION)
                        .replicas(replicas)
                        .build());
    }
}
