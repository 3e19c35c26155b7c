package io.kvasir.services.indexer;

import io.kvasir.gateway.server.FailureWords;
import io.kvasir.services.http.ServiceException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;

/**
 * Loads what a peer knows when an indexer starts: the dump of the first one that gives it whole.
 */
final class PeerRecovery {
    private static final Logger LOG = LoggerFactory.getLogger(PeerRecovery.class);

    private final IndexRegistry registry;
    private final Duration patience;

    /**
     * @param patience longest wait for a connection, for the head of an answer, and for each
     *     further byte
     */
    PeerRecovery(IndexRegistry registry, Duration patience) {
        this.registry = registry;
        this.patience = patience;
    }

    /**
     * Asks one peer after the other.
     *
     * @return whether one has given its dump
     */
    boolean recover(List<URI> peers) {
        try (HttpClient client = HttpClient.newBuilder().connectTimeout(patience).build()) {
            for (URI peer : peers) {
                if (load(peer, client)) {
                    return true;
                }
            }
        }
        return false;
    }

    private boolean load(URI peer, HttpClient client) {
        final DumpReader reader = new DumpReader(registry);
        try {
            final HttpResponse<InputStream> answer =
                    client.send(
                            HttpRequest.newBuilder(dumpOf(peer)).timeout(patience).build(),
                            HttpResponse.BodyHandlers.ofInputStream());
            try (WatchedStream body =
                    new WatchedStream(answer.body(), patience.toNanos(), System::nanoTime)) {
                Thread.ofVirtual().name("kvasir-peer-watch").start(body::watch);
                if (answer.statusCode() != 200) {
                    throw new IOException("status " + answer.statusCode());
                }
                reader.read(body);
            }
            LOG.info("{}: {} events loaded, {} left out", peer, reader.loaded(), reader.leftOut());
            return true;
        } catch (IOException | ServiceException | IllegalArgumentException e) {
            LOG.warn(
                    "{}: no whole dump ({} events loaded): {}",
                    peer,
                    reader.loaded(),
                    FailureWords.of(e));
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return false;
    }

    private static URI dumpOf(URI peer) {
        final String text = peer.toString();
        return URI.create((text.endsWith("/") ? text : text + "/") + "dump");
    }
}
