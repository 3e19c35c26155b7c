package io.kvasir.panama.jextract;

import static org.junit.jupiter.api.Assertions.assertEquals;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

class GeneratedBindingsTest {
    private final GeneratedBindings generated = new GeneratedBindings(SampleHeader.class);

    private static final MemoryLayout SIXTEEN_BYTES =
            MemoryLayout.structLayout(JAVA_LONG, JAVA_LONG);

    static Stream<Arguments> agreeing() {
        return Stream.of(
                Arguments.of("sample_open", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG)),
                Arguments.of("sample_open", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG)),
                Arguments.of("sample_is_open", FunctionDescriptor.of(JAVA_BOOLEAN, ADDRESS)),
                Arguments.of("sample_close", FunctionDescriptor.ofVoid(ADDRESS)),
                Arguments.of("sample_pass", FunctionDescriptor.of(JAVA_INT, SIXTEEN_BYTES)));
    }

    @ParameterizedTest
    @MethodSource("agreeing")
    void aFunctionOfTheSameTypeIsNoDifference(String symbol, FunctionDescriptor bound) {
        assertEquals(List.of(), generated.functionDifferences(Map.of(symbol, bound)));
    }

    static Stream<Arguments> differing() {
        final MemoryLayout bytes =
                MemoryLayout.structLayout(MemoryLayout.sequenceLayout(16, JAVA_BYTE));
        return Stream.of(
                Arguments.of("sample_open", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT)),
                Arguments.of("sample_open", FunctionDescriptor.of(JAVA_INT, ADDRESS, ADDRESS)),
                Arguments.of("sample_open", FunctionDescriptor.of(JAVA_LONG, ADDRESS, JAVA_LONG)),
                Arguments.of("sample_open", FunctionDescriptor.of(JAVA_INT, ADDRESS)),
                Arguments.of(
                        "sample_open", FunctionDescriptor.ofVoid(JAVA_INT, ADDRESS, JAVA_LONG)),
                Arguments.of("sample_is_open", FunctionDescriptor.of(JAVA_INT, ADDRESS)),
                Arguments.of("sample_close", FunctionDescriptor.of(JAVA_INT, ADDRESS)),
                Arguments.of("sample_pass", FunctionDescriptor.of(JAVA_INT, bytes)),
                Arguments.of("sample_pass", FunctionDescriptor.of(JAVA_INT, ADDRESS)));
    }

    @ParameterizedTest
    @MethodSource("differing")
    void aFunctionOfAnotherTypeIsListedWithBoth(String symbol, FunctionDescriptor bound) {
        final List<String> differences = generated.functionDifferences(Map.of(symbol, bound));
        assertEquals(1, differences.size());
        final String line = differences.getFirst();
        assertEquals(symbol + " is ", line.substring(0, symbol.length() + 4));
        assertEquals(bound + " here", line.substring(line.lastIndexOf(" as generated, ") + 15));
    }

    @Test
    void aFunctionThatIsNotGeneratedIsListed() {
        assertEquals(
                List.of("sample_gone is not generated"),
                generated.functionDifferences(
                        Map.of("sample_gone", FunctionDescriptor.ofVoid(ADDRESS))));
    }

    @Test
    void constantsAreComparedByValue() {
        assertEquals(
                List.of(),
                generated.constantDifferences(Map.of("SAMPLE_OK", 0, "SAMPLE_BUSY", -2)));
        assertEquals(
                List.of("SAMPLE_BUSY is -2 as generated, 2 here"),
                generated.constantDifferences(Map.of("SAMPLE_BUSY", 2)));
        assertEquals(
                List.of("SAMPLE_GONE is not generated"),
                generated.constantDifferences(Map.of("SAMPLE_GONE", 1)));
    }

    @Test
    void structsAreComparedByLengthAndOffsets() {
        assertEquals(
                List.of(),
                generated.structDifferences(
                        "sample_config", 16, Map.of("fast", 0, "port", 4, "delay", 8)));
        assertEquals(
                List.of("sample_config.port is at 4 as generated, at 1 here"),
                generated.structDifferences("sample_config", 16, Map.of("fast", 0, "port", 1)));
        assertEquals(
                List.of("sample_config.slow is not generated"),
                generated.structDifferences("sample_config", 16, Map.of("slow", 0)));
        assertEquals(
                List.of("sample_config has 16 bytes as generated, 24 here"),
                generated.structDifferences("sample_config", 24, Map.of()));
        assertEquals(
                List.of("struct sample_gone is not generated"),
                generated.structDifferences("sample_gone", 8, Map.of()));
    }
}
