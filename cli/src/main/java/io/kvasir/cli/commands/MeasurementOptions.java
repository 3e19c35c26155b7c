package io.kvasir.cli.commands;

import io.kvasir.opstreams.kvops.Indexes;
import io.kvasir.opstreams.kvops.KvopsBench;

import picocli.CommandLine.Option;

import java.util.ArrayList;
import java.util.List;

/** What is measured, in which JVMs, and how it is printed: options of all that replays streams. */
final class MeasurementOptions {
    @Option(
            names = "--index",
            paramLabel = "NAME",
            defaultValue = Indexes.KVASIR,
            description = "The index to measure; an unknown name lists them. Default: kvasir.")
    private String index;

    @Option(
            names = "--forks",
            paramLabel = "N",
            defaultValue = "1",
            description =
                    "Fresh JVMs for each stream, one after the other; 0 = inside this one. Default:"
                            + " ${DEFAULT-VALUE}.")
    private int forks;

    @Option(
            names = "--jvm-option",
            paramLabel = "OPT",
            description = "Further option of the forks' JVM; repeatable.")
    private List<String> jvmOptions = new ArrayList<>();

    @Option(names = "--json", description = "Print one JSON object instead of the table.")
    private boolean json;

    String index() {
        return index;
    }

    boolean isJson() {
        return json;
    }

    /** A bench that says on standard error what it does. */
    KvopsBench bench(CommonOptions common) {
        if (forks < 0) {
            throw common.wrong("--forks " + forks + " is negative");
        }
        if (forks == 0 && !jvmOptions.isEmpty()) {
            throw common.wrong("--jvm-option is for forks, of which --forks 0 has none");
        }
        return new KvopsBench(
                forks,
                jvmOptions,
                line -> {
                    common.err().println(line);
                    common.err().flush();
                });
    }
}
