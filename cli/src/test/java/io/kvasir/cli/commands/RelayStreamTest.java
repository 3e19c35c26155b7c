package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.KvasirProcess;
import io.kvasir.nats.events.EventSubjects;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** A relay to a stream of JetStream, made by others or by itself. */
@Tag("integration") // starts a server
class RelayStreamTest {
    private static final String NAMESPACE = "relayed";

    @RegisterExtension final RunningNats nats = new RunningNats();

    /** Makes a stream by a request of NATS' protocol. */
    private void makeStream(EventSubjects names, String options) throws IOException {
        final URI url = URI.create(nats.url());
        final String body =
                "{\"name\":\""
                        + names.stream()
                        + "\",\"subjects\":[\""
                        + names.streamSubject()
                        + "\"],"
                        + options
                        + "}";
        final String request =
                "CONNECT {\"verbose\":false}\r\nSUB answer 1\r\nPUB $JS.API.STREAM.CREATE."
                        + names.stream()
                        + " answer "
                        + body.length()
                        + "\r\n"
                        + body
                        + "\r\n";
        try (Socket socket = new Socket(url.getHost(), url.getPort());
                OutputStream out = socket.getOutputStream();
                BufferedReader in =
                        new BufferedReader(
                                new InputStreamReader(
                                        socket.getInputStream(), StandardCharsets.UTF_8))) {
            out.write(request.getBytes(StandardCharsets.UTF_8));
            String line = in.readLine();
            while (line != null && !line.startsWith("MSG answer")) {
                line = in.readLine();
            }
            final String answer = in.readLine();
            assertTrue(answer.contains("stream_create_response"), answer);
            assertFalse(answer.contains("\"error\""), answer);
        }
    }

    /** What a relay warns of, between the lines of its log. */
    private List<String> warnings() throws IOException, InterruptedException {
        try (KvasirProcess relay =
                new KvasirProcess(
                        "relay",
                        "--engine=tcp://127.0.0.1:1",
                        "--block-size=16",
                        "--nats=" + nats.url(),
                        "--jetstream",
                        "--namespace=" + NAMESPACE)) {
            relay.await(line -> line.startsWith("relaying "));
            assertEquals(143, relay.terminate());
            return relay.output().stream().filter(line -> line.startsWith("warning")).toList();
        }
    }

    @Test
    void aStreamThatLosesEventsIsAWarningAtTheStart() throws Exception {
        final EventSubjects names = EventSubjects.kvEvents(NAMESPACE, "backend", "generate");
        makeStream(names, "\"retention\":\"workqueue\"");
        assertEquals(
                List.of(
                        "warning: events may be missing: stream "
                                + names.stream()
                                + ", as others have made it, drops events that one gateway has"
                                + " read: its retention is work-queue; delete it, so that it is"
                                + " made anew, or use another nats-component"),
                warnings());
    }

    @Test
    void aStreamOfItsOwnIsNone() throws Exception {
        assertEquals(List.of(), warnings());
    }
}
