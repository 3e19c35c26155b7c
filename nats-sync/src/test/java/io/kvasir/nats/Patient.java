package io.kvasir.nats;

import io.nats.client.Connection;
import io.nats.client.Nats;
import io.nats.client.Options;

import java.io.IOException;
import java.time.Duration;

/** Access to the servers of tests: a slow machine must not look like a lost server. */
public final class Patient {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private Patient() {}

    /** Where NATS is, with time for each request. */
    public static NatsAccess access(String url) {
        return new NatsAccess(url, null, null, TIMEOUT);
    }

    /** A client of its own, which has as much time for each request. */
    public static Connection connect(String url) throws IOException, InterruptedException {
        return Nats.connect(
                Options.builder().server(url).connectionTimeout(TIMEOUT).maxReconnects(-1).build());
    }
}
