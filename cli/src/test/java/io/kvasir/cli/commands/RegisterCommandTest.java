package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.KvasirProcess;
import io.kvasir.cli.RawServer;
import io.kvasir.cli.StubServer;
import io.kvasir.nats.NatsAccess;
import io.kvasir.nats.NatsStore;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.InstanceRole;
import io.kvasir.registry.ModelInput;
import io.kvasir.registry.Registration;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.RunningNats;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;

class RegisterCommandTest {
    private static final String ENGINE = "register --url http://127.0.0.1:1 --model m --name w ";

    @ParameterizedTest
    @ValueSource(
            strings = {
                "register",
                ENGINE,
                ENGINE + "--nats nats://x --etcd http://x",
                ENGINE + "--etcd http://x --kubernetes serving",
                ENGINE + "--etcd http://x --trust-store no/such.pem",
                ENGINE + "--etcd http://x --credentials no/such.creds",
                ENGINE + "--etcd http://x --key-store no/such.p12",
                ENGINE + "--etcd http://x --bucket b",
                ENGINE + "--kubernetes serving --trust-store no/such.pem",
                ENGINE + "--nats nats://x --etcd-trust-store no/such.pem",
                ENGINE + "--nats nats://x --etcd-user u",
                ENGINE + "--nats nats://x --etcd-password-file no/such",
                ENGINE + "--nats nats://x --prefix /p/",
                ENGINE + "--nats nats://x --kubernetes-server http://x",
                ENGINE + "--nats nats://x --replay tcp://h:1",
                ENGINE + "--nats nats://x --bootstrap h:1",
                ENGINE + "--nats nats://x --event-rank 1",
                ENGINE + "--nats nats://x --events tcp://h:1 --event-rank 65537",
                ENGINE + "--nats nats://x --role nobody",
                ENGINE + "--nats nats://x --input ids",
                ENGINE + "--nats nats://x --dp 0",
                ENGINE + "--nats nats://x --block-size -1",
                ENGINE + "--nats nats://x --ttl-ms 0",
                ENGINE + "--nats nats://x --drain-ms -1",
                ENGINE + "--nats nats://x --label noequals",
                ENGINE + "--nats nats://x --lora a;b",
                ENGINE + "--nats nats://x --lora-id a=0",
                ENGINE + "--nats nats://x --lora-id a=b",
                ENGINE + "--nats nats://x --taint a=b"
            })
    void aWrongCommandLineIsRefused(String line) {
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains("kvasir register"), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "--url h:1, url=h:1 must be http://host:port",
        "--url x, url=x must be http://host:port",
        "--url http://h:1/v1, must be the server's base",
        "--url http://h:1 --events tcp://*:5557, tcp://*:5557: host and port are needed",
        "--url http://h:1 --events tcp://h:1 --replay h:2, h:2: it must begin with tcp://",
        "--url http://h:1 --handoff vlm, handoff=vlm",
    })
    void whatNoGatewayCouldUseIsRefused(String options, String words) {
        final String line = "register --model m --name w --etcd http://127.0.0.1:1 " + options;
        final CommandRun run = CommandRun.of(line.split(" ", -1));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains(words), run.err());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                ENGINE + "--nats ",
                "relay --engine tcp://127.0.0.1:1 --block-size 4 --nats ",
                "slots --port 0 --replica-sync --nats "
            })
    void anAddressThatIsNoneOfNatsIsAWrongCommandLine(String line) {
        final CommandRun run = CommandRun.of((line + "http://u:secret@h:1").split(" ", -1));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains("--nats http://"), run.err());
        assertTrue(run.err().contains("is no address of NATS"), run.err());
        assertFalse(run.err().contains("secret"), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "--etcd http://h:1 --ttl-ms 999, --ttl-ms 999 is not within 1000..3600000",
        "--nats nats://h:1 --ttl-ms 3600001, --ttl-ms 3600001 is not within 1000..3600000",
        "--kubernetes serving --ttl-ms -1, --ttl-ms -1 is not within 1000..3600000",
        "--etcd http://h:1 --drain-ms -1, --drain-ms -1 must be at least 0"
    })
    void timesOutOfRangeAreNamedByTheirOptions(String options, String words) {
        final CommandRun run = CommandRun.of((ENGINE + options).split(" ", -1));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains(words), run.err());
    }

    @Test
    void aFileOfCredentialsThatIsMissingIsNamed() {
        final CommandRun run =
                CommandRun.of(
                        (ENGINE + "--nats nats://127.0.0.1:1 --trust-store no/such.p12")
                                .split(" ", -1));
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains("no/such.p12"), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "--etcd-trust-store no/such.pem, --etcd-trust-store no/such.pem",
        "--etcd-user u --etcd-password-file no/such, --etcd-password-file no/such"
    })
    void aFileForEtcdThatIsMissingIsNamed(String options, String named) {
        final CommandRun run =
                CommandRun.of((ENGINE + "--etcd http://127.0.0.1:1 " + options).split(" ", -1));
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains(named), run.err());
    }

    @ParameterizedTest
    @CsvSource({
        "--etcd http://h:1 --etcd-user u, --etcd-user and --etcd-password-file go together",
        "--etcd http://h:1 --etcd-password-file f, --etcd-user and --etcd-password-file go"
                + " together",
        "--etcd http://u:secret@h:1, by --etcd-user and --etcd-password-file",
        "--etcd ftp://h:1, etcd endpoint ftp://h:1 must be"
    })
    void anAddressOrUserOfEtcdThatCannotBeIsAWrongCommandLine(String options, String named) {
        final CommandRun run = CommandRun.of((ENGINE + options).split(" ", -1));
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains(named), run.err());
        assertFalse(run.err().contains("secret"), run.err());
    }

    @Test
    @Tag("integration") // starts a process
    void aUserOfEtcdLogsIn(@TempDir Path folder) throws Exception {
        final Path password = Files.writeString(folder.resolve("password"), "secret\n");
        try (StubServer etcd = etcd().page("/v3/auth/authenticate", 200, "{\"token\":\"t1\"}");
                StubServer engine = new StubServer().page("/health", 200, "");
                KvasirProcess register =
                        register(
                                engine.url(),
                                etcd,
                                "--etcd-user=u",
                                "--etcd-password-file=" + password)) {
            register.await(l -> l.startsWith("registered "));
            assertEquals("t1", etcd.authorization("/v3/kv/txn"));
            assertEquals(143, register.terminate());
        }
    }

    @Test
    void aKubernetesServerThatIsNoUrlIsNamed() {
        final CommandRun run =
                CommandRun.of(
                        (ENGINE + "--kubernetes serving --kubernetes-server nonsense")
                                .split(" ", -1));
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains("nonsense"), run.err());
    }

    @Test
    @Tag("integration") // takes three times as long as an engine may take to answer
    void anEngineWhoseAnswersDoNotEndIsTakenBack() throws Exception {
        final byte[] whole = RawServer.answer(200, "", new byte[0]);
        final byte[] head =
                "HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\n".getBytes(StandardCharsets.ISO_8859_1);
        final AtomicBoolean hasAnswered = new AtomicBoolean();
        try (StubServer etcd = etcd();
                RawServer engine =
                        new RawServer((_, _) -> hasAnswered.getAndSet(true) ? head : whole);
                KvasirProcess register = register(engine.url(), etcd)) {
            register.await(l -> l.startsWith("registered "));
            register.await(l -> l.startsWith("taken back: " + engine.url()));
            assertEquals(143, register.terminate());
        }
    }

    @Test
    @Tag("integration") // starts a process
    void theHealthOfAnEngineIsAskedForAlsoWhereItsUrlEndsInASlash() throws Exception {
        try (StubServer etcd = etcd();
                StubServer engine = new StubServer().page("/health", 200, "");
                KvasirProcess register = register(engine.url() + "//", etcd)) {
            register.await(l -> l.startsWith("registered "));
            engine.page("/health", 503, "");
            register.await(l -> l.startsWith("taken back: " + engine.url() + "/health "));
            assertEquals(143, register.terminate());
        }
    }

    @Test
    @Tag("integration") // starts a process
    void anEngineThatDoesNotAnswerYetIsSaidWithTheReasonOfTheLastTry() throws Exception {
        try (StubServer etcd = etcd();
                StubServer engine = new StubServer().page("/health", 503, "");
                KvasirProcess register = register(engine.url(), etcd)) {
            final String waits = "not registered yet: " + engine.url() + "/health ";
            register.await(l -> l.equals(waits + "answered 503"));
            engine.page("/health", 400, "");
            register.await(l -> l.equals(waits + "answered 400; the port may want https"));
            engine.page("/health", 200, "");
            register.await(l -> l.startsWith("registered "));
            engine.page("/health", 500, "");
            register.await(l -> l.equals("taken back: " + engine.url() + "/health answered 500"));
            assertEquals(143, register.terminate());
        }
        try (StubServer etcd = etcd();
                KvasirProcess register = register("http://127.0.0.1:1", etcd)) {
            register.await(l -> l.startsWith("not registered yet: http://127.0.0.1:1/health: "));
            assertEquals(143, register.terminate());
        }
    }

    @Test
    @Tag("integration") // starts a process
    void aRegistrationThatIsNotRenewedIsSaidAndThatItIsBack() throws Exception {
        try (StubServer engine = new StubServer().page("/health", 200, "");
                StubServer etcd = etcd();
                KvasirProcess register =
                        new KvasirProcess(
                                "register",
                                "--url=" + engine.url(),
                                "--model=m",
                                "--name=w",
                                "--ttl-ms=2000",
                                "--drain-ms=0",
                                "--etcd=" + etcd.url())) {
            register.await(l -> l.startsWith("registered "));
            etcd.page("/v3/lease/keepalive", 503, "{}");
            register.await(l -> l.startsWith("not renewed: "));
            register.await(l -> l.startsWith("lapsed: not renewed for "));
            etcd.page("/v3/lease/keepalive", 200, "{\"result\":{\"TTL\":\"2\"}}");
            register.await(l -> l.equals("renewed, after it had lapsed"));
        }
    }

    private static KvasirProcess register(String url, StubServer etcd, String... further)
            throws IOException {
        return register(url, List.of("--ttl-ms=600000", "--etcd=" + etcd.url()), further);
    }

    private static KvasirProcess register(String url, List<String> store, String... further)
            throws IOException {
        final List<String> line =
                new ArrayList<>(
                        List.of(
                                "register",
                                "--url=" + url,
                                "--model=m",
                                "--name=w",
                                "--drain-ms=0"));
        line.addAll(store);
        line.addAll(List.of(further));
        return new KvasirProcess(line.toArray(String[]::new));
    }

    /** Grants and takes what it is asked for, and keeps nothing. */
    private static StubServer etcd() throws IOException {
        return new StubServer()
                .page("/v3/lease/grant", 200, "{\"ID\":\"7\",\"TTL\":\"600\"}")
                .page("/v3/lease/keepalive", 200, "{\"result\":{\"TTL\":\"600\"}}")
                .page("/v3/lease/revoke", 200, "{}")
                .page("/v3/kv/range", 200, "{\"header\":{\"revision\":\"1\"}}")
                .page("/v3/kv/txn", 200, "{\"header\":{\"revision\":\"2\"},\"succeeded\":true}");
    }

    @Test
    @Tag("integration") // starts a server
    void aBucketWithAnotherTtlIsWarnedOfWithBothNumbers(@TempDir Path folder) throws Exception {
        try (NatsServer nats = RunningNats.started(folder);
                StubServer engine = new StubServer().page("/health", 200, "");
                NatsStore made =
                        new NatsStore(NatsAccess.of(nats.url()), "b", Duration.ofSeconds(30))) {
            assertNull(made.get("ns/a"), "it is made");
            assertEquals(
                    List.of(
                            "warning: --ttl-ms 2000 has no effect: bucket b of NATS was made with"
                                    + " a TTL of 30000 ms, so long after this process is killed"
                                    + " the registration ends; for all in the bucket it is"
                                    + " changed by: nats stream edit KV_b --max-age 2000ms"),
                    warnings(nats, engine, "--ttl-ms=2000"));
            assertEquals(List.of(), warnings(nats, engine, "--ttl-ms=30000"));
            assertEquals(List.of(), warnings(nats, engine));
        }
    }

    /** What it warns of until it has registered. */
    private static List<String> warnings(NatsServer nats, StubServer engine, String... ttl)
            throws Exception {
        final List<String> store = List.of("--bucket=b", "--nats=" + nats.url());
        try (KvasirProcess register = register(engine.url(), store, ttl)) {
            register.await(l -> l.startsWith("registered "));
            assertEquals(143, register.terminate());
            return register.output().stream().filter(l -> l.startsWith("warning: ")).toList();
        }
    }

    @Test
    @Tag("integration") // starts a server
    void anEngineIsRegisteredWhileItAnswersAndTakenBackAtTheEnd(@TempDir Path folder)
            throws Exception {
        final InstanceId id = new InstanceId("dynamo", "backend", "generate", "w");
        final HttpServer engine =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        engine.createContext(
                "/health",
                exchange -> {
                    exchange.sendResponseHeaders(200, -1);
                    exchange.close();
                });
        engine.start();
        final String url = "http://127.0.0.1:" + engine.getAddress().getPort();
        try (NatsServer nats = RunningNats.started(folder);
                NatsStore store =
                        new NatsStore(
                                NatsAccess.of(nats.url()),
                                NatsStore.BUCKET,
                                Duration.ofSeconds(10));
                KvasirProcess register =
                        new KvasirProcess(
                                "register",
                                "--url=" + url,
                                "--model=m",
                                "--name=w",
                                "--role=prefill",
                                "--input=text",
                                "--block-size=16",
                                "--events=tcp://127.0.0.1:5557",
                                "--label=rack=r1",
                                "--lora=sql",
                                "--lora=fr",
                                "--lora-id=fr=2",
                                "--taint=spot",
                                "--drain-ms=100",
                                "--nats=" + nats.url())) {
            register.await(l -> l.startsWith("registered " + id));
            final Registration said = Registration.decode(store.get(id.key()).value());
            assertEquals(url, said.url().toString());
            assertEquals(InstanceRole.PREFILL, said.role());
            assertEquals(ModelInput.TEXT, said.input());
            assertEquals(16, said.blockSize());
            assertEquals("r1", said.labels().get("rack"));
            assertEquals(
                    new Registration.Adapters(Set.of("sql", "fr"), Map.of("fr", 2L)),
                    said.adapters());
            assertEquals(Set.of("spot"), said.taints());
            engine.stop(0);
            register.await(l -> l.startsWith("taken back: " + url));
            assertNull(store.get(id.key()));
            assertEquals(143, register.terminate());
        } finally {
            engine.stop(0);
        }
    }
}
