package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

class NativeAccessTest {
    /** Prints what the probe of this process answers. */
    static final class Main {
        public static void main(String[] args) {
            System.out.println(NixlProbe.probe().describe());
        }
    }

    @Test
    void withoutTheFlagTheAnswerNamesItAndNothingIsLoadedOrWarnedAbout(@TempDir Path folder)
            throws Exception {
        final ChildProcess.Result result =
                ChildProcess.run(Main.class, List.of(), Map.of(), folder);
        assertEquals(
                "NIXL is not available: native access is not enabled for the class path;"
                        + " start Java with --enable-native-access=ALL-UNNAMED\n",
                result.out());
        assertEquals("", result.err());
        assertEquals(0, result.exit());
    }
}
