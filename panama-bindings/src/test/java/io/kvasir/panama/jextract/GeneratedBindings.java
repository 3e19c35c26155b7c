package io.kvasir.panama.jextract;

import java.lang.foreign.AddressLayout;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.GroupLayout;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Bindings as jextract generates them, to compare hand-written ones with. In a header's class a
 * function f has {@code f$descriptor()} and a constant C has {@code C()}; a struct's class has
 * {@code layout()} and, for a field x, {@code x$offset()}. All are static; a long header is spread
 * over a chain of superclasses.
 *
 * <p>A pointer may be a {@code JAVA_LONG} on the hand-written side: its address alone is passed
 * then. Names of layouts, and what pointers point to, are not compared.
 */
public final class GeneratedBindings {
    private final Class<?> header;

    /**
     * Reads what jextract made of a header.
     *
     * @param header the header's class
     */
    public GeneratedBindings(Class<?> header) {
        this.header = header;
    }

    /**
     * Compares functions.
     *
     * @param bound the hand-written descriptor of each symbol
     * @return a line for each that is missing or has another type
     */
    public List<String> functionDifferences(Map<String, FunctionDescriptor> bound) {
        final List<String> differences = new ArrayList<>();
        bound.forEach(
                (symbol, descriptor) -> {
                    final Optional<Object> generated = call(header, symbol + "$descriptor");
                    if (generated.isEmpty()) {
                        differences.add(symbol + " is not generated");
                    } else if (!agree((FunctionDescriptor) generated.get(), descriptor)) {
                        differences.add(
                                "%s is %s as generated, %s here"
                                        .formatted(symbol, generated.get(), descriptor));
                    }
                });
        return differences;
    }

    /**
     * Compares constants.
     *
     * @param bound the hand-written value of each name
     * @return a line for each that is missing or has another value
     */
    public List<String> constantDifferences(Map<String, Integer> bound) {
        final List<String> differences = new ArrayList<>();
        bound.forEach(
                (name, value) -> {
                    final Optional<Object> generated = call(header, name);
                    if (generated.isEmpty()) {
                        differences.add(name + " is not generated");
                    } else if (((Number) generated.get()).longValue() != value) {
                        differences.add(
                                "%s is %s as generated, %d here"
                                        .formatted(name, generated.get(), value));
                    }
                });
        return differences;
    }

    /**
     * Compares a struct, whose class lies beside the header's.
     *
     * @param name its name in C
     * @param length hand-written, in bytes
     * @param offsets the hand-written offset of each field
     * @return a line for each difference
     */
    public List<String> structDifferences(String name, long length, Map<String, Integer> offsets) {
        final Class<?> struct;
        try {
            struct =
                    Class.forName(
                            header.getPackageName() + "." + name, true, header.getClassLoader());
        } catch (ClassNotFoundException e) {
            return List.of("struct " + name + " is not generated");
        }
        final List<String> differences = new ArrayList<>();
        final long generatedLength =
                call(struct, "layout")
                        .map(layout -> ((MemoryLayout) layout).byteSize())
                        .orElse(-1L);
        if (generatedLength != length) {
            differences.add(
                    "%s has %d bytes as generated, %d here"
                            .formatted(name, generatedLength, length));
        }
        offsets.forEach(
                (field, offset) -> {
                    final Optional<Object> generated = call(struct, field + "$offset");
                    if (generated.isEmpty()) {
                        differences.add(name + "." + field + " is not generated");
                    } else if ((long) generated.get() != offset) {
                        differences.add(
                                "%s.%s is at %s as generated, at %d here"
                                        .formatted(name, field, generated.get(), offset));
                    }
                });
        return differences;
    }

    /** What a static method without parameters returns; empty if there is none of that name. */
    private static Optional<Object> call(Class<?> type, String name) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            for (Method method : at.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == 0) {
                    return Optional.of(invoke(method));
                }
            }
        }
        return Optional.empty();
    }

    private static Object invoke(Method method) {
        method.setAccessible(true); // the superclasses are not public
        try {
            return method.invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new LinkageError(method + ": the generated code cannot be used", e);
        }
    }

    private static boolean agree(FunctionDescriptor generated, FunctionDescriptor bound) {
        final List<MemoryLayout> theirs = layouts(generated);
        final List<MemoryLayout> ours = layouts(bound);
        boolean agree =
                theirs.size() == ours.size()
                        && generated.returnLayout().isPresent() == bound.returnLayout().isPresent();
        for (int i = 0; agree && i < ours.size(); i++) {
            agree = agree(theirs.get(i), ours.get(i));
        }
        return agree;
    }

    private static List<MemoryLayout> layouts(FunctionDescriptor descriptor) {
        final List<MemoryLayout> layouts = new ArrayList<>();
        descriptor.returnLayout().ifPresent(layouts::add);
        layouts.addAll(descriptor.argumentLayouts());
        return layouts;
    }

    private static boolean agree(MemoryLayout generated, MemoryLayout bound) {
        if (generated instanceof ValueLayout theirs && bound instanceof ValueLayout ours) {
            return theirs.carrier() == ours.carrier()
                    || (theirs instanceof AddressLayout && ours.carrier() == long.class);
        }
        return generated instanceof GroupLayout
                && bound instanceof GroupLayout
                && generated.byteSize() == bound.byteSize()
                && generated.byteAlignment() == bound.byteAlignment();
    }
}
