package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** Runs {@link RealNixlContract} in a JVM of its own, and each of its tests is one here. */
@Tag("integration")
class RealNixlContractTest {
    @TestFactory
    List<DynamicTest> contract(@TempDir Path folder) throws Exception {
        return contract(Map.of(), folder);
    }

    @TestFactory
    List<DynamicTest> contractOverTcp(@TempDir Path folder) throws Exception {
        return contract(NixlChild.TCP, folder);
    }

    private static List<DynamicTest> contract(Map<String, String> environment, Path folder)
            throws Exception {
        final String text = NixlChild.run(RealNixlContract.class, environment, folder);
        final List<DynamicTest> tests =
                text.lines()
                        .filter(line -> line.startsWith(RealNixlContract.RESULT + "\t"))
                        .map(line -> test(line.split("\t", -1), text))
                        .toList();
        assertFalse(tests.isEmpty(), text);
        return tests;
    }

    private static DynamicTest test(String[] words, String all) {
        return DynamicTest.dynamicTest(
                words[2],
                () -> {
                    switch (words[1]) {
                        case "SUCCESSFUL" -> {}
                        case "ABORTED" -> abort(words[3]);
                        default -> fail(words[3] + System.lineSeparator() + all);
                    }
                });
    }
}
