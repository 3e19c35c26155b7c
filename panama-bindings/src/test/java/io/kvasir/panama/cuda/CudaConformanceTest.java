package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.testsupport.Gcc;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The bindings against C: a compiler prints what it makes of {@code native/include/cuda_subset.h},
 * once alone and once beside the published {@code cuda.h}, where it compiles only if the two agree.
 */
@Tag("integration")
class CudaConformanceTest {
    private static final String HEADER_PROPERTY = "kvasir.cuda.include";
    private static final String HEADER_VARIABLE = "KVASIR_CUDA_INCLUDE";

    @TempDir private Path folder;

    /** Words of each line by its kind and name. */
    private static Map<String, String> entries(List<String> lines, String kind) {
        final Map<String, String> entries = new TreeMap<>();
        for (String line : lines) {
            final String[] words = line.split(" ", -1);
            if (words[0].equals(kind)) {
                entries.put(words[1], words[2]);
            }
        }
        return entries;
    }

    private List<String> print(String... flags) {
        assumeTrue(Gcc.isInstalled(), "skipped: gcc cannot be started here");
        final Path program =
                Gcc.compile(
                        folder.resolve("conformance"),
                        Gcc.source("native/src/test/c/cuda_conformance.c"),
                        flags);
        final Gcc.Result result = Gcc.run(folder, List.of(program.toString()));
        assertEquals(0, result.exit(), result.out());
        return result.out().lines().toList();
    }

    @Test
    void theBindingsEqualTheSubsetHeader() throws IllegalAccessException {
        final List<String> lines = print();
        assertEquals("version 0", lines.getFirst());
        compareAll(lines);
    }

    @Test
    void theSubsetHeaderAndTheBindingsEqualThePublishedHeader() throws IllegalAccessException {
        final String include = System.getProperty(HEADER_PROPERTY, System.getenv(HEADER_VARIABLE));
        assumeTrue(
                include != null && !include.isBlank(),
                "skipped: no folder with cuda.h named by -D"
                        + HEADER_PROPERTY
                        + " or "
                        + HEADER_VARIABLE);
        assertTrue(Files.exists(Path.of(include, "cuda.h")), "no cuda.h in " + include);
        final List<String> lines = print("-DKVASIR_CUDA_PUBLISHED", "-isystem", include);
        System.out.printf(
                "cuda.h %s: %d functions compared%n",
                lines.getFirst(), entries(lines, "function").size());
        assertTrue(lines.getFirst().matches("version 1[2-9]\\d{3}"), lines.getFirst());
        compareAll(lines);
    }

    private static void compareAll(List<String> lines) throws IllegalAccessException {
        compareFunctions(entries(lines, "function"));
        compareResults(entries(lines, "result"));
        compareConstants(entries(lines, "constant"));
        assertEquals(Map.of("CUipcMemHandle", "64", "CUuuid", "16"), entries(lines, "struct"));
    }

    private static void compareFunctions(Map<String, String> published) {
        final List<String> differences = new ArrayList<>();
        for (CudaFunction function : CudaFunction.values()) {
            final String kinds = published.remove(function.symbol());
            if (kinds == null) {
                if (function.isNeeded()) {
                    differences.add(function.symbol() + " is not in C");
                }
            } else if (!agrees(kinds, kinds(function))) {
                differences.add(
                        "%s is %s in C, %s here"
                                .formatted(function.symbol(), kinds, kinds(function)));
            }
        }
        assertEquals(List.of(), differences);
        assertEquals(Map.of(), published, "not bound");
    }

    /** A pointer that is never read through may be a number here; nothing else may differ. */
    private static boolean agrees(String c, String java) {
        boolean agrees = c.length() == java.length();
        for (int i = 0; agrees && i < c.length(); i++) {
            agrees = c.charAt(i) == java.charAt(i) || (c.charAt(i) == 'p' && java.charAt(i) == 'l');
        }
        return agrees;
    }

    private static String kinds(CudaFunction function) {
        final StringBuilder kinds = new StringBuilder();
        kinds.append(kind(function.descriptor().returnLayout().orElseThrow()));
        function.descriptor().argumentLayouts().forEach(layout -> kinds.append(kind(layout)));
        return kinds.toString();
    }

    private static String kind(MemoryLayout layout) {
        if (layout instanceof AddressLayout) {
            return "p";
        }
        if (layout instanceof GroupLayout) {
            return "s" + layout.byteSize();
        }
        return switch ((int) layout.byteSize()) {
            case 1 -> "b";
            case 4 -> "i";
            case 8 -> "l";
            default -> "?";
        };
    }

    private static void compareResults(Map<String, String> published) {
        final Map<String, String> results = new TreeMap<>();
        for (CudaResult result : CudaResult.values()) {
            results.put(result.cName(), Integer.toString(result.code()));
        }
        assertEquals(published, results);
    }

    private static void compareConstants(Map<String, String> published)
            throws IllegalAccessException {
        final Map<String, String> constants = new TreeMap<>();
        for (Field field : CudaConstants.class.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic()) {
                constants.put(field.getName(), Integer.toString(field.getInt(null)));
            }
        }
        assertEquals(published, constants);
    }

    @Test
    void theStructsHaveTheirLengths() {
        assertEquals(64, IpcHandleDescriptor.LAYOUT.byteSize());
        assertEquals(IpcHandleDescriptor.LENGTH, IpcHandleDescriptor.LAYOUT.byteSize());
        assertEquals(1, IpcHandleDescriptor.LAYOUT.byteAlignment());
    }
}
