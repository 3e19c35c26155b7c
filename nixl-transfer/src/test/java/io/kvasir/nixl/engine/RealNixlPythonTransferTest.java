package io.kvasir.nixl.engine;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.nixl.transport.NixlChild;
import io.kvasir.testsupport.NixlPython;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/** A JVM and a Python agent, and the real NIXL between them. */
@Tag("integration")
class RealNixlPythonTransferTest {
    private static void movesWithPython(int sets, Map<String, String> more, Path folder)
            throws Exception {
        final NixlPython python = NixlPython.get();
        assumeTrue(python.isThere(), "skipped: no Python agent: " + python.why());
        final Map<String, String> environment = new HashMap<>(more);
        environment.put("PYTHONPATH", python.path());
        final Path script =
                Path.of(RealNixlPythonTransferTest.class.getResource("/nixl/peer.py").toURI());
        final String text =
                NixlChild.run(
                        TwoProcesses.class,
                        environment,
                        folder,
                        "nixl",
                        Integer.toString(sets),
                        Long.toString(Seeds.next("movesWithPython")),
                        NixlPython.COMMAND,
                        script.toString(),
                        python.module());
        assertTrue(text.contains("sets " + sets), text);
    }

    @Test
    void tenThousandSetsToAndFromAPythonAgentArriveWhole(@TempDir Path folder) throws Exception {
        movesWithPython(10_000, Map.of(), folder);
    }

    @Test
    void setsToAndFromAPythonAgentOverTcpArriveWhole(@TempDir Path folder) throws Exception {
        movesWithPython(RealNixlTransferTest.TCP_SETS, NixlChild.TCP, folder);
    }
}
