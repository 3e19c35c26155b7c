package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.testing.Gateways;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What is found before a start that the start would find. */
class StartFilesTest {
    @TempDir private Path dir;

    @BeforeEach
    void makeAFile() throws IOException {
        Files.createFile(dir.resolve("file"));
    }

    /** {@code FILE} is a file, {@code DIR} a folder, {@code NONE} not there. */
    private GatewayConfig config(String settings) {
        final GatewayConfig.Builder builder = Gateways.config();
        Gateways.set(
                builder,
                settings.replace("FILE", dir.resolve("file").toString())
                        .replace("NONE", dir.resolve("none").toString())
                        .replace("DIR", dir.toString()));
        return builder.build();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "state-dir=FILE",
                "state-dir=FILE/below",
                "state-mapped-dir=FILE",
                "counters-dir=FILE",
                "decision-journal-dir=FILE",
                "state-dir=/proc/x",
                "state-mapped-dir=/proc/x/y",
                "counters-dir=/proc/x",
                "decision-journal-dir=/proc/x",
                "state-dir=FILE serve-model=name=n,state-dir=NONE/n",
                "shared-memory-dir=FILE tokenizer=sim",
                "shared-memory-dir=/proc/x tokenizer=sim",
                "state-dir=FILE shared-memory-dir=DIR",
                "access-log=DIR",
                "access-log=NONE/log",
                "access-log=FILE/log",
                "access-log=/proc/aa",
                "discovery-kubernetes-selector=a=b discovery-kubernetes-account=NONE"
                        + " discovery-kubernetes-server=https://h:1",
                "discovery-kubernetes-resources=true discovery-kubernetes-namespace=n"
                        + " discovery-kubernetes-server=h"
            })
    void whatTheStartWouldRefuseIsSaidInItsWords(String settings) {
        final GatewayConfig config = config(settings);
        final GatewayException atStart =
                assertThrows(GatewayException.class, () -> GatewayServer.start(config).close());
        assertEquals(List.of(atStart.getMessage()), StartFiles.problems(config));
    }

    @Test
    void nothingIsLeftOfWhatIsGood() throws IOException {
        final GatewayConfig config =
                config(
                        "state-dir=NONE/s state-mapped-dir=NONE/m counters-dir=NONE/c"
                                + " decision-journal-dir=NONE/j access-log=DIR/log");
        assertEquals(List.of(), StartFiles.problems(config));
        assertFalse(Files.exists(dir.resolve("none")));
        assertFalse(Files.exists(dir.resolve("log")));
        final Path log = Files.writeString(dir.resolve("log"), "as it was");
        assertEquals(List.of(), StartFiles.problems(config));
        assertEquals("as it was", Files.readString(log));
    }
}
