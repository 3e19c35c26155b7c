package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.panama.jextract.GeneratedBindings;
import io.kvasir.panama.jextract.Jextract;
import io.kvasir.testsupport.Gcc;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The bindings of the CUDA driver against what an installed jextract generates. */
@Tag("integration")
class CudaJextractTest {
    private static final String HEADER = "native/include/cuda_subset.h";
    private static final String HEADER_CLASS = "io.kvasir.panama.generated.cuda.CudaHeader";

    @Test
    void theBindingsEqualWhatJextractGenerates() throws Exception {
        final Jextract jextract = Jextract.wanted();
        final Path folder =
                Files.createDirectories(Path.of("target/jextract/cuda")).toAbsolutePath();
        final GeneratedBindings generated = generate(jextract, folder);
        final List<String> differences = new ArrayList<>();
        differences.addAll(generated.functionDifferences(functions()));
        differences.addAll(generated.constantDifferences(constants()));
        differences.addAll(
                generated.structDifferences(
                        "CUipcMemHandle", IpcHandleDescriptor.LENGTH, Map.of("reserved", 0)));
        assertEquals("", String.join("\n", differences));
    }

    private static GeneratedBindings generate(Jextract jextract, Path folder) throws IOException {
        final Path library = FakeCuda.compile(folder.resolve("libfake_cuda.so"));
        return jextract.generate(folder, Gcc.source(HEADER), HEADER_CLASS, library);
    }

    /** Those of every driver: the header alone declares no others. */
    private static Map<String, FunctionDescriptor> functions() {
        final Map<String, FunctionDescriptor> functions = new TreeMap<>();
        for (CudaFunction function : CudaFunction.values()) {
            if (function.isNeeded()) {
                functions.put(function.symbol(), function.descriptor());
            }
        }
        return functions;
    }

    private static Map<String, Integer> constants() throws IllegalAccessException {
        final Map<String, Integer> constants = new TreeMap<>();
        for (CudaResult result : CudaResult.values()) {
            constants.put(result.cName(), result.code());
        }
        for (Field field : CudaConstants.class.getDeclaredFields()) {
            if (!field.isSynthetic()) {
                constants.put(field.getName(), field.getInt(null));
            }
        }
        return constants;
    }
}
