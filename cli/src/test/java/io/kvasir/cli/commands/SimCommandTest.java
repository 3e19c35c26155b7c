package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.sim.SimEngine;
import io.kvasir.sim.config.HandoffConfig;
import io.kvasir.sim.config.KvBytes;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.config.SimHandoff;
import io.kvasir.sim.config.SimRole;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class SimCommandTest {
    @Tag("integration") // starts processes
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

    @Tag("integration") // starts a JVM
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

    @Tag("integration") // starts processes
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

    @Tag("integration") // starts processes
    @Test
    void aFlagWithAddressesOfIpv6IsOneThatServeTakes() throws Exception {
        try (KvasirProcess sim =
                new KvasirProcess(
                        "sim", "--host=::1", "--port=0", "--role=prefill", "--handoff=sglang")) {
            final String flag = sim.await(line -> line.contains("--worker "));
            final WorkerConfig worker =
                    WorkerConfig.parse(flag.substring(flag.indexOf("http")).strip());
            assertEquals("[::1]", worker.url().getHost());
            assertTrue(flag.contains(",events=tcp://[::1]:"), flag);
            assertTrue(flag.contains(",bootstrap=[::1]:"), flag);
            sim.await(line -> line.startsWith("running"));
            assertEquals(143, sim.terminate());
        }
    }

    @Tag("integration") // starts processes
    @Test
    void aDecodeEnginePullsTheBytesOfAPrefillEngineInAnotherProcess() throws Exception {
        final HandoffConfig decodes =
                HandoffConfig.of(SimRole.DECODE, SimHandoff.VLLM).withBytes(KvBytes.SMALL);
        try (KvasirProcess sim =
                        new KvasirProcess("sim", "--port=0", "--role=prefill", "--kv-bytes");
                SimEngine decode = SimEngine.start(SimConfig.builder().handoff(decodes).build());
                HttpClient http = HttpClient.newHttpClient()) {
            final String models = sim.await(line -> line.startsWith("engine ")).substring(7);
            sim.await(line -> line.startsWith("running"));
            final String prefilled =
                    complete(http, URI.create(models), "{\"do_remote_decode\":true}");
            final int from = prefilled.indexOf("{\"do_remote_prefill");
            final String params = prefilled.substring(from, prefilled.indexOf('}', from) + 1);
            final String answer = complete(http, decode.url(), params);
            assertEquals(1, decode.handoffs(0).pulls(), answer);
            assertEquals(0, decode.handoffs(0).stalePulls(), answer);
            assertTrue(complete(http, URI.create(models), "null").contains(text(answer)), answer);
        }
    }

    private static String complete(HttpClient http, URI engine, String params) throws Exception {
        final String body =
                "{\"prompt\":\"a prompt of more than one block\",\"max_tokens\":9,"
                        + "\"ignore_eos\":true,\"kv_transfer_params\":"
                        + params
                        + "}";
        final HttpResponse<String> answer =
                http.send(
                        HttpRequest.newBuilder(engine.resolve("/v1/completions"))
                                .POST(HttpRequest.BodyPublishers.ofString(body))
                                .build(),
                        HttpResponse.BodyHandlers.ofString());
        assertEquals(200, answer.statusCode(), answer.body());
        return answer.body();
    }

    private static String text(String answer) {
        final int from = answer.indexOf("\"text\":");
        return answer.substring(from, answer.indexOf(",\"logprobs\"", from));
    }

    /** An address for documentation, which no machine has. */
    @Test
    void anAddressOfAnotherMachineIsSaidToBeNone() {
        final CommandRun run = CommandRun.of("sim", "--host=192.0.2.1");
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(
                run.err()
                        .contains(
                                "cannot listen on --host 192.0.2.1: it must be an address of this"
                                        + " machine"),
                run.err());
        assertFalse(run.err().contains("--port"), run.err());
    }

    @Test
    void aLackOfDescriptorsNamesTheirLimitAndTheCount() {
        final String said =
                SimCommand.notStarted(
                                new IllegalStateException(
                                        "cannot bind tcp://127.0.0.1:0",
                                        new IOException("Too many open files")),
                                28,
                                1_000)
                        .getMessage();
        assertTrue(
                said.matches(
                        "no file descriptor is left for engine 29 of --count 1000: the limit is"
                                + " \\d+; raise ulimit -n, or lower --count"),
                said);
    }

    @Test
    void ranksWithoutFixedPortsAreRefused() {
        final CommandRun run = CommandRun.of("sim", "--dp=2", "--port=0");
        assertEquals(2, run.exitCode());
        assertTrue(run.err().contains("--dp 2 needs --events-port"), run.err());
    }
}
