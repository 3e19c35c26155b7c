package io.kvasir.opstreams.report;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/** What a measurement was made on, as far as the machine tells. */
final class Machine {
    private static final Path CPUINFO = Path.of("/proc/cpuinfo");

    private Machine() {}

    /** One fact a line. */
    static List<String> facts() {
        final List<String> facts = new ArrayList<>();
        facts.add(
                "processor: "
                        + processor()
                        + ", "
                        + Runtime.getRuntime().availableProcessors()
                        + " cores for this process");
        facts.add(
                "system: "
                        + System.getProperty("os.name")
                        + " "
                        + System.getProperty("os.version")
                        + " "
                        + System.getProperty("os.arch"));
        facts.add("Java: " + System.getProperty("java.vendor") + " " + Runtime.version());
        facts.add("load average: " + loadAverage());
        return facts;
    }

    /**
     * Runnable threads over the last minute; near or above the number of cores is a busy machine.
     */
    static String loadAverage() {
        final double load = ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage();
        return load < 0 ? "unknown" : String.format(Locale.ROOT, "%.1f", load);
    }

    private static String processor() {
        try (Stream<String> lines = Files.lines(CPUINFO)) {
            return lines.filter(line -> line.startsWith("model name"))
                    .map(line -> line.substring(line.indexOf(':') + 1).strip())
                    .findFirst()
                    .orElse("unknown");
        } catch (IOException e) {
            return "unknown"; // not Linux
        }
    }
}
