package io.kvasir.gateway.log;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.openai.Endpoint;
import io.kvasir.gateway.openai.Json;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/** The access log before outputs that are slow, full, or come back. */
class AccessLogWriterTest {
    private static final int QUEUE = 16;

    private final ByteArrayOutputStream written = new ByteArrayOutputStream();
    private final AtomicBoolean full = new AtomicBoolean();
    private final AtomicInteger opened = new AtomicInteger();
    private final LongAdder dropped = new LongAdder();

    private AccessLog log(OutputStream out) throws IOException {
        return log(out, AccessLogFormat.JSON);
    }

    private AccessLog log(OutputStream out, AccessLogFormat format) throws IOException {
        final AccessLog log =
                new AccessLog(
                        "test",
                        format,
                        QUEUE,
                        () -> {
                            opened.incrementAndGet();
                            return out;
                        },
                        dropped);
        log.start();
        return log;
    }

    private static AccessEntry entry(int number) {
        return new AccessEntry(
                number,
                "h",
                "GET",
                "HTTP/1.1",
                new RequestRecord("id-" + number, Endpoint.LIVE),
                200,
                1,
                1,
                1);
    }

    private long lines() {
        return written.toString(StandardCharsets.UTF_8).lines().count();
    }

    /** Fails while the disk is full. */
    private class Disk extends OutputStream {
        @Override
        public void write(int b) throws IOException {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] bytes, int offset, int length) throws IOException {
            if (full.get()) {
                throw new IOException("No space left on device");
            }
            written.write(bytes, offset, length);
        }
    }

    @Test
    void requestsDoNotWaitForAnOutputThatBlocksAndWhatIsDroppedIsCounted() throws Exception {
        final CountDownLatch writing = new CountDownLatch(1);
        final CountDownLatch free = new CountDownLatch(1);
        final OutputStream pipe =
                new Disk() {
                    @Override
                    public void write(byte[] bytes, int offset, int length) throws IOException {
                        writing.countDown();
                        try {
                            free.await();
                        } catch (InterruptedException e) {
                            Thread.currentThread().interrupt();
                        }
                        super.write(bytes, offset, length);
                    }
                };
        try (AccessLog log = log(pipe)) {
            log.add(entry(0));
            writing.await();
            for (int i = 1; i <= QUEUE + 100; i++) {
                log.add(entry(i));
            }
            assertEquals(100, dropped.sum());
            free.countDown();
            Eventually.holds("written", () -> lines() == 1 + QUEUE);
        }
    }

    @Test
    void aFullDiskLosesLinesNotTheLog() throws Exception {
        try (AccessLog log = log(new Disk())) {
            full.set(true);
            for (int i = 0; i < 5; i++) {
                log.add(entry(i));
            }
            Eventually.holds("dropped", () -> dropped.sum() == 5);
            full.set(false);
            log.add(entry(5));
            Eventually.holds("written", () -> lines() == 1);
            assertEquals(5, dropped.sum());
        }
        assertTrue(written.toString(StandardCharsets.UTF_8).contains("\"id-5\""));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '\0',
            value = {
                "m-1:a/b|m-1:a/b",
                "a b|\"a b\"",
                "a\" 200 mode=b|\"a\\\" 200 mode=b\"",
                "a\\\" mode=b|\"a\\\\\\\" mode=b\"",
                "a b\\|\"a b\\\\\"",
                "a\\b|a\\b",
                "a%n1.2.3.4 - -|\"a\\u{a}1.2.3.4 - -\"",
                "a%cb|a\\u{1b}b"
            })
    void aNameThatOthersChooseEndsNeitherItsLineNorItsField(String model, String shown)
            throws Exception {
        final RequestRecord request = new RequestRecord("id", Endpoint.CHAT);
        request.model(model.replace("%n", "\n").replace("%c", "\u001b"));
        try (AccessLog log = log(new Disk(), AccessLogFormat.TEXT)) {
            log.add(new AccessEntry(0, "h", "POST", "HTTP/1.1", request, 200, 1, 1, 1));
        }
        final String line = written.toString(StandardCharsets.UTF_8);
        assertEquals(1, lines());
        assertTrue(line.contains(" model=" + shown + " duration_ms="), line);
    }

    @Test
    void halfOfASurrogatePairIsNotInALine() throws Exception {
        final RequestRecord request = new RequestRecord("id", Endpoint.CHAT);
        request.model("a\ud83d");
        request.routed("kv", "\ude00b", 1);
        try (AccessLog log = log(new Disk())) {
            log.add(new AccessEntry(0, "h", "POST", "HTTP/1.1", request, 200, 1, 1, 1));
        }
        final JsonNode line = Json.MAPPER.readTree(written.toByteArray());
        assertEquals("a?", line.get("model").textValue());
        assertEquals("?b", line.get("worker").textValue());
    }

    @Test
    void closingWritesWhatWaits() throws Exception {
        final AccessLog log = log(new Disk());
        for (int i = 0; i < QUEUE; i++) {
            log.add(entry(i));
        }
        log.close();
        log.close();
        assertEquals(QUEUE, lines());
    }
}
