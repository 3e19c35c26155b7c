package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.console.ExitCode;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

class ServiceCommandsTest {
    @Tag("integration") // starts processes
    @ParameterizedTest
    @ValueSource(strings = {"indexer", "slots", "select"})
    void aServiceAnswersAtThePrintedPortUntilTheProcessIsEnded(String command) throws Exception {
        try (KvasirProcess service = new KvasirProcess(command, "--host=127.0.0.1", "--port=0");
                HttpClient http = HttpClient.newHttpClient()) {
            final String line = service.await(l -> l.startsWith(command + " listening on "));
            final URI workers =
                    URI.create("http://" + line.substring(line.lastIndexOf(' ') + 1) + "/workers");
            final HttpResponse<String> answer =
                    http.send(
                            HttpRequest.newBuilder(workers).build(),
                            HttpResponse.BodyHandlers.ofString());
            assertEquals(200, answer.statusCode());
            assertEquals("[]", answer.body());
            assertEquals(143, service.terminate());
        }
    }

    @Tag("integration") // starts processes
    @ParameterizedTest
    @ValueSource(strings = {"indexer", "slots", "select"})
    void aPortInUseIsOneLineWithThePort(String command) throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                KvasirProcess service =
                        new KvasirProcess(
                                command, "--host=127.0.0.1", "--port=" + taken.getLocalPort())) {
            final String line = service.await(l -> l.startsWith("kvasir " + command + ": "));
            assertTrue(line.contains(":" + taken.getLocalPort()), line);
            assertEquals(ExitCode.FAILED, service.exitCode());
        }
    }

    @Tag("integration") // starts processes
    @Test
    void anAddressOfIpv6IsPrintedAsInUrls() throws Exception {
        try (KvasirProcess service = new KvasirProcess("slots", "--host=::1", "--port=0")) {
            final String line = service.await(l -> l.startsWith("slots listening on "));
            assertTrue(line.matches("slots listening on \\[::1]:[0-9]+"), line);
            assertEquals(143, service.terminate());
        }
    }

    @Test
    void aPortOfIpv6InUseIsPrintedAsInUrls() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.ofLiteral("::1"))) {
            final CommandRun run =
                    CommandRun.of("slots", "--host=::1", "--port=" + taken.getLocalPort());
            assertEquals(ExitCode.FAILED, run.exitCode());
            assertTrue(
                    run.err()
                            .contains(
                                    "cannot listen on [::1]:"
                                            + taken.getLocalPort()
                                            + ": Address already in use; choose another --host"
                                            + " or --port"),
                    run.err());
        }
    }

    @Test
    void aHostThatIsUnknownIsSaid() {
        final CommandRun run = CommandRun.of("indexer", "--host=nosuch.invalid", "--port=0");
        assertEquals(ExitCode.FAILED, run.exitCode());
        assertEquals(
                "kvasir indexer: cannot listen on nosuch.invalid:0: its host is unknown; choose"
                        + " another --host or --port",
                run.err().strip());
    }

    @ParameterizedTest
    @CsvSource({
        "--workers=1=tcp://127.0.0.1:9, --block-size",
        "--workers=x=tcp://127.0.0.1:9 --block-size=4, numbers",
        "--workers=1 --block-size=4, id=address",
        "--workers=7=nonsense --block-size=4, worker '7=nonsense'",
        "--workers=1=tcp://127.0.0.1 --block-size=4, it must be tcp://host:port",
        "'--workers=1=tcp://h:9,1:0=tcp://h:8 --block-size=4', its id and dp rank are those of"
                + " another",
        "--peers=nonsense, nonsense"
    })
    void aWrongCommandLineIsTwoAndSaysWhat(String options, String word) {
        final String[] words = ("indexer --port=0 " + options).split(" ", -1);
        final CommandRun run = CommandRun.of(words);
        assertEquals(ExitCode.USAGE, run.exitCode());
        assertTrue(run.err().contains(word), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "select --port=99999, --port 99999 is not within 0..65535",
        "slots --port=-1, --port -1 is not within 0..65535",
        "indexer --port=65536, --port 65536 is not within 0..65535",
        "sim --port=65536, --port 65536 is not within 0..65535",
        "sim --count=2 --port=65535, --port 65535 is not within 0..65535 with all 2 ports",
        "sim --port=0 --model=, --model ''",
        "select --port=0 --selection-cache-ttl-secs=0, --selection-cache-ttl-secs 0",
        "select --port=0 --max-models=0, --max-models 0",
        "slots --port=0 --max-requests=0, --max-requests 0",
        "slots --port=0 --request-timeout-secs=-1, --request-timeout-secs -1",
        "indexer --port=0 --max-workers=0, --max-workers 0"
    })
    void aValueOutOfRangeIsAWrongCommandLine(String line, String word) {
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(ExitCode.USAGE, run.exitCode(), run.err());
        assertTrue(run.err().contains(word), run.err());
    }

    @Test
    void anEngineThatCannotBeRegisteredEndsTheStart() {
        final CommandRun run =
                CommandRun.of(
                        "indexer",
                        "--port=0",
                        "--workers=7=tcp://127.0.0.1:9,8=tcp://127.0.0.1:9",
                        "--max-workers=1",
                        "--block-size=4");
        assertEquals(ExitCode.FAILED, run.exitCode());
        assertTrue(run.err().contains("worker 8"), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "--replica-sync, --nats",
        "--nats=nats://127.0.0.1:9, --replica-sync",
        "--replica-sync --nats=nats://127.0.0.1:9 --replica-digest-ms=0, --replica-digest-ms",
        "--replica-sync --nats=nats://127.0.0.1:9 --replica-lease-ms=9000000000000000000,"
                + " --replica-lease-ms",
        "--replica-sync --nats=nats://127.0.0.1:9 --replica-id=0, --replica-id",
        "--replica-sync --nats=nats://127.0.0.1:9 --replica-lease-ms=1000, --replica-lease-ms",
        "--replica-sync --nats=nats://127.0.0.1:9 --nats-component=, --nats-component",
        "--replica-sync --nats=nats://127.0.0.1:9 --replica-max-requests=0, --replica-max-requests"
    })
    void replicationThatCannotBeIsTwoAndSaysWhat(String options, String word) {
        final String[] words = ("slots --port=0 " + options).split(" ", -1);
        final CommandRun run = CommandRun.of(words);
        assertEquals(ExitCode.USAGE, run.exitCode());
        assertTrue(run.err().contains(word), run.err());
    }
}
