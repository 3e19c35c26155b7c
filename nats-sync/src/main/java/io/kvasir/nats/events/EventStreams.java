package io.kvasir.nats.events;

import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.api.DiscardPolicy;
import io.nats.client.api.RetentionPolicy;
import io.nats.client.api.StorageType;
import io.nats.client.api.StreamConfiguration;

import java.io.IOException;
import java.time.Duration;
import java.time.ZonedDateTime;

/** The stream of JetStream that keeps the events of a component's workers for an hour. */
final class EventStreams {
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final int STREAM_NOT_FOUND = 10059;

    private EventStreams() {}

    /**
     * Makes the stream unless it is there; one that is there stays as it is.
     *
     * @return when it was made
     */
    static ZonedDateTime open(JetStreamManagement management, EventSubjects names)
            throws IOException, JetStreamApiException {
        try {
            return management.getStreamInfo(names.stream()).getCreateTime();
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() != STREAM_NOT_FOUND) {
                throw e;
            }
        }
        return management
                .addStream(
                        StreamConfiguration.builder()
                                .name(names.stream())
                                .subjects(names.streamSubjects())
                                .retentionPolicy(RetentionPolicy.Limits)
                                .storageType(StorageType.File)
                                .discardPolicy(DiscardPolicy.Old)
                                .maxAge(RETENTION)
                                .build())
                .getCreateTime();
    }
}
