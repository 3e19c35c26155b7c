package io.kvasir.services.indexer;

import io.kvasir.gateway.server.FailureWords;
import io.kvasir.services.http.ServiceException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * Loads what a peer knows when an indexer starts: the dump of the first one that gives it whole.
 */
final class PeerRecovery {
    private static final Logger LOG = LoggerFactory.getLogger(PeerRecovery.class);
    private static final long CHECK_NS = 100_000_000L;

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
            try (InputStream body = new WatchedStream(answer.body(), patience.toNanos())) {
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

    /** A body that is closed when no byte of it has come for some time. */
    private static final class WatchedStream extends FilterInputStream {
        private volatile long lastNs = System.nanoTime();
        private volatile boolean closed;

        WatchedStream(InputStream in, long patienceNs) {
            super(in);
            Thread.ofVirtual().name("kvasir-peer-watch").start(() -> watch(patienceNs));
        }

        private void watch(long patienceNs) {
            while (!closed) {
                LockSupport.parkNanos(CHECK_NS);
                if (System.nanoTime() - lastNs > patienceNs) {
                    closeQuietly();
                }
            }
        }

        private void closeQuietly() {
            try {
                close();
            } catch (IOException e) {
                LOG.debug("a peer's answer did not close cleanly", e);
            }
        }

        @Override
        public int read() throws IOException {
            final int one = super.read();
            lastNs = System.nanoTime();
            return one;
        }

        @Override
        public int read(byte[] to, int offset, int length) throws IOException {
            final int count = super.read(to, offset, length);
            lastNs = System.nanoTime();
            return count;
        }

        @Override
        public void close() throws IOException {
            closed = true;
            super.close();
        }
    }
}
