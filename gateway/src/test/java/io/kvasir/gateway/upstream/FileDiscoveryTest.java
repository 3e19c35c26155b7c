package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.ReplacedFile;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;

class FileDiscoveryTest extends DiscoveryContract {
    private static final Duration OFTEN = Duration.ofMillis(5);
    private static final Duration NEVER = Duration.ofDays(1);

    @TempDir private Path dir;

    @Override
    protected Discovery started(Discovery.Listener listener, List<DiscoveredWorker> workers)
            throws IOException {
        final StringBuilder text = new StringBuilder(workers.isEmpty() ? "[]" : "workers:\n");
        for (DiscoveredWorker worker : workers) {
            final WorkerConfig w = worker.worker();
            text.append("- url: ").append(w.url()).append("\n  name: ").append(w.name());
            text.append("\n  dp: ").append(w.dataParallelSize()).append('\n');
            if (w.events() != null) {
                text.append("  events: ").append(w.events()).append('\n');
                text.append("  replay: ").append(w.replay()).append('\n');
                text.append("  topic: ").append(w.topic()).append('\n');
            }
        }
        return started(text.toString(), NEVER, listener);
    }

    private Path file() {
        return dir.resolve("workers.yaml");
    }

    private Discovery started(String text, Duration interval, Discovery.Listener listener)
            throws IOException {
        Files.writeString(file(), text);
        final Discovery discovery = new FileDiscovery(file(), MODEL, interval);
        discovery.start(listener);
        return discovery;
    }

    @Test
    void aChangeIsSeenByItself() throws Exception {
        try (Discovery _ = started("[\"http://h:1,name=a\"]", OFTEN, known)) {
            ReplacedFile.write(file(), "- http://h:1,name=a\n- http://h:2,name=b\n");
            Eventually.holds("both", () -> known.all().size() == 2);
            final Path other = Files.writeString(dir.resolve("other"), "- http://h:3,name=c\n");
            Files.move(other, file(), StandardCopyOption.ATOMIC_MOVE);
            Eventually.holds(
                    "replaced", () -> known.all().equals(List.of(worker("http://h:3,name=c"))));
        }
    }

    @Test
    void aReplacedLinkIsAChangeAsInAMountedConfigMap() throws Exception {
        final Path first = Files.createDirectory(dir.resolve("first"));
        final Path second = Files.createDirectory(dir.resolve("second"));
        Files.writeString(first.resolve("w"), "- http://h:1,name=a\n");
        Files.writeString(second.resolve("w"), "- http://h:2,name=b\n");
        final Path link = Files.createSymbolicLink(dir.resolve("data"), first);
        try (Discovery discovery = new FileDiscovery(link.resolve("w"), MODEL, OFTEN)) {
            discovery.start(known);
            assertEquals(List.of(worker("http://h:1,name=a")), known.all());
            final Path next = Files.createSymbolicLink(dir.resolve("next"), second);
            Files.move(next, link, StandardCopyOption.ATOMIC_MOVE);
            Eventually.holds(
                    "the other", () -> known.all().equals(List.of(worker("http://h:2,name=b"))));
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "\n",
                "workers:",
                "workers: {",
                "a: b",
                "[[http://h:1]]",
                "- http://h:1,name=a\n- http://h:2,name=a",
                "- url: http://h:1\n  url: http://h:2",
                "- ftp://h:1",
                "- url: http://h:1\n  nome: a",
                "- url: http://h:1\n  role: any",
                "- url: http://h:1\n  name: \"a\\nb\"",
                "\u0000"
            })
    void aBrokenFileIsSaidOnceAndChangesNothing(String broken) throws Exception {
        try (Discovery _ = started("- http://h:1,name=a\n", OFTEN, known)) {
            ReplacedFile.write(file(), broken);
            Eventually.holds("said", () -> known.failureCount() == 1);
            assertTrue(
                    known.failures.getFirst().contains("workers.yaml"), known.failures::toString);
            assertEquals(List.of(worker("http://h:1,name=a")), known.all());
            Files.delete(file());
            Eventually.holds("a missing file is another cause", () -> known.failureCount() == 2);
            assertEquals(List.of(worker("http://h:1,name=a")), known.all());
            ReplacedFile.write(file(), "- http://h:2,name=b\n");
            Eventually.holds(
                    "mended", () -> known.all().equals(List.of(worker("http://h:2,name=b"))));
            assertEquals(2, known.failureCount());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"[", "{", "- ", "? "})
    void aFileThatIsNestedTooDeepIsRefusedWithLineAndLimit(String open) throws Exception {
        try (Discovery _ = started("- http://h:1,name=a\n", OFTEN, known)) {
            ReplacedFile.write(file(), open.repeat(300_000));
            Eventually.holds("said", () -> known.failureCount() == 1);
            final String said = known.failures.getFirst();
            assertTrue(said.contains("workers.yaml:1:"), said);
            assertTrue(said.contains("nested more than 100 deep"), said);
            ReplacedFile.write(file(), "- http://h:2,name=b\n");
            Eventually.holds(
                    "mended", () -> known.all().equals(List.of(worker("http://h:2,name=b"))));
        }
    }

    /** As of a heap that is full for a while. */
    @Test
    void anErrorEndsNothing() throws Exception {
        final AtomicBoolean fails = new AtomicBoolean();
        final Known seen =
                new Known() {
                    @Override
                    public synchronized void view(List<DiscoveredWorker> all) {
                        if (fails.get()) {
                            throw new OutOfMemoryError("of the test");
                        }
                        super.view(all);
                    }
                };
        try (Discovery _ = started("- http://h:1,name=a\n", OFTEN, seen)) {
            fails.set(true);
            ReplacedFile.write(file(), "- http://h:2,name=b\n");
            Eventually.holds("said", () -> seen.failureCount() == 1);
            assertTrue(seen.failures.getFirst().contains("of the test"), seen.failures::toString);
            fails.set(false);
            Eventually.holds(
                    "applied without another change",
                    () -> seen.all().equals(List.of(worker("http://h:2,name=b"))));
        }
    }

    @Test
    void aReloadLooksAtOnce() throws Exception {
        try (Discovery discovery = started("- http://h:1,name=a\n", NEVER, known)) {
            ReplacedFile.write(file(), "- http://h:2,name=b\n");
            discovery.reload();
            assertEquals(List.of(worker("http://h:2,name=b")), known.all());
            ReplacedFile.write(file(), "x");
            discovery.reload();
            assertEquals(1, known.failureCount());
            assertEquals(List.of(worker("http://h:2,name=b")), known.all());
        }
    }

    @Test
    void aFileThatCannotBeReadIsNamedWithTheReasonInWords() throws Exception {
        try (Discovery discovery = started("[]", NEVER, known)) {
            Files.delete(file());
            discovery.reload();
            assertEquals(
                    List.of("cannot read " + file() + ": there is no such file"), known.failures);
        }
        final GatewayException refused =
                assertThrows(
                        GatewayException.class,
                        () -> new FileDiscovery(dir.resolve("none"), MODEL, NEVER).start(known));
        assertEquals(
                "cannot read workers-file " + dir.resolve("none") + ": there is no such file",
                refused.getMessage());
    }

    @Test
    void aBrokenFileAtTheStartIsAnError() {
        final GatewayException refused =
                assertThrows(GatewayException.class, () -> started("a: b", NEVER, known).close());
        assertTrue(refused.getMessage().contains("workers.yaml:1"), refused.getMessage());
    }

    @Test
    void eachWrongWorkerOfAFileIsNamedWithItsLine() {
        final String text = "- ftp://h:1\n- http://h:2,name=a\n- http://h:3,name=a\n- x\n";
        final GatewayException refused =
                assertThrows(GatewayException.class, () -> started(text, NEVER, known).close());
        for (String line : List.of("workers.yaml:1", "workers.yaml:3", "workers.yaml:4")) {
            assertTrue(refused.getMessage().contains(line), refused.getMessage());
        }
        assertEquals(3, refused.getMessage().lines().count(), refused.getMessage());
    }

    @Test
    void modelRoleAndGenerationAreRead() throws Exception {
        try (Discovery _ =
                started(
                        "[{url: 'http://h:1', name: a, model: other, role: prefill, generation:"
                                + " 7}]",
                        NEVER,
                        known)) {
            assertEquals(
                    List.of(
                            new DiscoveredWorker(
                                    "other",
                                    7,
                                    WorkerConfig.parse("http://h:1,name=a,role=prefill"))),
                    known.all());
        }
    }
}
