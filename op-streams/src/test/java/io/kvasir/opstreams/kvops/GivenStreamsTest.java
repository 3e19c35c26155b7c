package io.kvasir.opstreams.kvops;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Streams of the user's own: {@code KVASIR_KVOPS_STREAMS} (or {@code -Dkvasir.kvops.streams}) names
 * a folder, every {@code .kvops} file in it up to 20 MB is replayed.
 */
class GivenStreamsTest {
    private static final long MAX_LENGTH = 20_000_000;

    @Test
    void everyGivenStreamIsAnsweredRight() throws IOException, InterruptedException {
        final Optional<String> folder =
                Optional.ofNullable(System.getProperty("kvasir.kvops.streams"))
                        .or(() -> Optional.ofNullable(System.getenv("KVASIR_KVOPS_STREAMS")));
        assumeTrue(
                folder.isPresent(),
                "skipped: KVASIR_KVOPS_STREAMS names no folder with .kvops files");
        for (Path stream : streams(Path.of(folder.orElseThrow()))) {
            final KvopsResult result =
                    new KvopsBench(0, List.of(), line -> {})
                            .run(ReplayPlan.of(stream).withWarmUp(0));
            assertEquals(0, result.mismatches(), stream.toString());
            assertEquals(0, result.median(Figure.REFUSED_STORES), stream.toString());
        }
    }

    private static List<Path> streams(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.filter(file -> file.toString().endsWith(".kvops"))
                    .filter(file -> file.toFile().length() <= MAX_LENGTH)
                    .sorted()
                    .toList();
        }
    }
}
