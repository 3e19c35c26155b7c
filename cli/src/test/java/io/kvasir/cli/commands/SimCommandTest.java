package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;

import org.junit.jupiter.api.Test;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class SimCommandTest {
    @Test
    void enginesAnswerAtThePrintedAddressesUntilTheProcessIsEnded() throws Exception {
        try (KvasirProcess sim = new KvasirProcess("sim", "--count=2", "--port=0", "--model=m")) {
            final String first = sim.await(line -> line.startsWith("engine ")).substring(7);
            sim.await(line -> line.startsWith("engine "));
            final String flag = sim.await(line -> line.contains("--worker "));
            assertTrue(flag.contains(",events=tcp://127.0.0.1:"), flag);
            assertTrue(flag.contains(",replay=tcp://127.0.0.1:"), flag);
            sim.await(line -> line.startsWith("running"));
            try (HttpClient http = HttpClient.newHttpClient()) {
                final HttpResponse<String> models =
                        http.send(
                                HttpRequest.newBuilder(URI.create(first)).build(),
                                HttpResponse.BodyHandlers.ofString());
                assertEquals(200, models.statusCode());
                assertTrue(models.body().contains("\"m\""), models.body());
            }
            assertEquals(143, sim.terminate());
        }
    }

    @Test
    void aPortInUseIsOneLineWithThePortAndTheOption() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                KvasirProcess sim = new KvasirProcess("sim", "--port=" + taken.getLocalPort())) {
            final String line = sim.await(l -> l.startsWith("kvasir sim: "));
            assertTrue(line.contains(":" + taken.getLocalPort()), line);
            assertTrue(line.contains("--port"), line);
            assertEquals(3, sim.exitCode());
        }
    }

    @Test
    void prefillEnginesPrintTheirSidePortAndTheirRoleForServe() throws Exception {
        try (KvasirProcess sim =
                new KvasirProcess("sim", "--port=0", "--role=prefill", "--handoff=sglang")) {
            final String port = sim.await(line -> line.contains("side port ")).trim().substring(10);
            final String flag = sim.await(line -> line.contains("--worker "));
            assertTrue(
                    flag.endsWith(
                            ",role=prefill,handoff=sglang,bootstrap=127.0.0.1:" + port.trim()),
                    flag);
            sim.await(line -> line.startsWith("running"));
            assertEquals(143, sim.terminate());
        }
    }

    @Test
    void ranksWithoutFixedPortsAreRefused() {
        final CommandRun run = CommandRun.of("sim", "--dp=2", "--port=0");
        assertEquals(2, run.exitCode());
        assertTrue(run.err().contains("--dp 2 needs --events-port"), run.err());
    }
}
