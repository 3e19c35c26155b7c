package io.kvasir.nats.events;

import io.kvasir.nats.LastingConnection;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.ServerErrors;
import io.nats.client.JetStreamApiException;
import io.nats.client.JetStreamManagement;
import io.nats.client.JetStreamOptions;
import io.nats.client.PurgeOptions;
import io.nats.client.api.ConsumerInfo;
import io.nats.client.api.StreamInfo;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.time.ZonedDateTime;

/** The stream of a component's events in JetStream. */
final class EventStream implements SharedStream {
    private static final int MESSAGE_NOT_FOUND = 10037;

    private final NatsAccess access;
    private final EventSubjects names;
    private final int replicas;
    private final ServerErrors errors = new ServerErrors();
    private LastingConnection connection; // null: to be made; guarded by this
    private boolean closed; // guarded by this

    /**
     * Connects with the first call; later it connects again by itself.
     *
     * @param replicas servers of a cluster that keep the stream, where it is made
     */
    EventStream(NatsAccess access, EventSubjects names, int replicas) {
        this.access = access;
        this.names = names;
        this.replicas = replicas;
    }

    @Override
    public String name() {
        return names.stream();
    }

    /** Something that NATS may refuse. */
    private interface Call<T> {
        T by(JetStreamManagement management)
                throws IOException, JetStreamApiException, InterruptedException;
    }

    private <T> T call(String what, Call<T> call) throws IOException {
        try {
            return call.by(management());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException(what + " was interrupted");
        } catch (IOException | JetStreamApiException | IllegalStateException e) {
            throw new IOException(
                    what + " of " + name() + " at " + access.at(errors.reason(e, access.timeout())),
                    e);
        }
    }

    private synchronized JetStreamManagement management() throws IOException, InterruptedException {
        if (closed) {
            throw new IOException("it is closed");
        }
        if (connection == null) {
            connection = EventConnections.connect(access, "kvasir-snapshots", (_, _) -> {}, errors);
        }
        return connection
                .now()
                .jetStreamManagement(
                        JetStreamOptions.builder().requestTimeout(access.timeout()).build());
    }

    @Override
    public State state() throws IOException {
        final StreamInfo now =
                call("state", management -> EventStreams.open(management, names, replicas));
        return new State(
                now.getCreateTime(),
                now.getStreamState().getFirstSequence(),
                now.getStreamState().getLastSequence(),
                now.getStreamState().getMsgCount(),
                now.getConfiguration().getMaxAge(),
                now.getTimestamp()); // null of servers before 2.10
    }

    @Override
    public ZonedDateTime publishedOrNull(long from) throws IOException {
        return call("message " + from, management -> publishedOrNull(management, from));
    }

    private ZonedDateTime publishedOrNull(JetStreamManagement management, long from)
            throws IOException, JetStreamApiException {
        try {
            return management.getNextMessage(name(), from, names.streamSubjects()).getTime();
        } catch (JetStreamApiException e) {
            if (e.getApiErrorCode() == MESSAGE_NOT_FOUND) {
                return null;
            }
            throw e;
        }
    }

    @Override
    public void purge(ZonedDateTime made, long upTo) throws IOException {
        call(
                "purge",
                management -> {
                    long last = upTo;
                    for (ConsumerInfo consumer : management.getConsumers(name())) {
                        last = Math.min(last, consumer.getAckFloor().getStreamSequence());
                    }
                    final StreamInfo now = management.getStreamInfo(name());
                    if (now.getCreateTime().equals(made)
                            && now.getStreamState().getFirstSequence() <= last) {
                        management.purgeStream(
                                name(), PurgeOptions.builder().sequence(last + 1).build());
                    }
                    return null;
                });
    }

    @Override
    public void purge() throws IOException {
        call(
                "purge",
                management -> {
                    EventStreams.open(management, names, replicas);
                    return management.purgeStream(name());
                });
    }

    @Override
    public void close() {
        final LastingConnection former;
        synchronized (this) {
            closed = true;
            former = connection;
            connection = null;
        }
        if (former != null) {
            former.close();
        }
    }
}
