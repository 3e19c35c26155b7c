package io.kvasir.chronicle;

import net.openhft.chronicle.map.ChronicleMap;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** The flags without which Chronicle Map fails in the middle of something. Stateless. */
final class JvmFlags {
    /** Packages that it calls: {@code module/package}. */
    private static final List<String> EXPORTED =
            List.of(
                    "java.base/jdk.internal.ref",
                    "java.base/sun.nio.ch",
                    "jdk.unsupported/sun.misc",
                    "jdk.compiler/com.sun.tools.javac.file");

    /** Packages that it reflects on. */
    private static final List<String> OPENED =
            List.of(
                    "jdk.compiler/com.sun.tools.javac",
                    "java.base/java.lang",
                    "java.base/java.lang.reflect",
                    "java.base/java.io",
                    "java.base/java.util");

    private JvmFlags() {}

    /** All of them. */
    static List<String> all() {
        return Stream.concat(
                        EXPORTED.stream().map(p -> "--add-exports=" + p + "=ALL-UNNAMED"),
                        OPENED.stream().map(p -> "--add-opens=" + p + "=ALL-UNNAMED"))
                .toList();
    }

    /** Those that this JVM was not started with; empty if Chronicle Map can be used. */
    static List<String> missing() {
        final Module user = ChronicleMap.class.getModule();
        final List<String> missing = new ArrayList<>();
        for (String wanted : EXPORTED) {
            if (!module(wanted).isExported(packageOf(wanted), user)) {
                missing.add("--add-exports=" + wanted + "=ALL-UNNAMED");
            }
        }
        for (String wanted : OPENED) {
            if (!module(wanted).isOpen(packageOf(wanted), user)) {
                missing.add("--add-opens=" + wanted + "=ALL-UNNAMED");
            }
        }
        return missing;
    }

    private static Module module(String wanted) {
        final String name = wanted.substring(0, wanted.indexOf('/'));
        return ModuleLayer.boot()
                .findModule(name)
                .orElse(ChronicleMap.class.getModule()); // a JRE without it: opening says so
    }

    private static String packageOf(String wanted) {
        return wanted.substring(wanted.indexOf('/') + 1);
    }
}
