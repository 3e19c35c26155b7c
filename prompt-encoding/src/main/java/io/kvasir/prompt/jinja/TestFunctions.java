package io.kvasir.prompt.jinja;

import java.util.HashMap;
import java.util.Map;

/** Jinja's tests: {@code value is name(argument)}. */
final class TestFunctions {
    @FunctionalInterface
    private interface Test {
        boolean holds(Object value, Arguments arguments);
    }

    private static final Map<String, Test> TESTS = new HashMap<>();

    static {
        plain("defined", value -> !(value instanceof Undefined));
        plain("undefined", value -> value instanceof Undefined);
        plain("none", value -> value == null);
        plain("boolean", value -> value instanceof Boolean);
        plain("true", value -> Boolean.TRUE.equals(value));
        plain("false", value -> Boolean.FALSE.equals(value));
        plain("integer", value -> Numbers.isWhole(value) && !(value instanceof Boolean));
        plain("float", value -> value instanceof Double);
        plain("number", Numbers::isNumber);
        plain("string", PythonValues::isText);
        plain("mapping", value -> value instanceof Map);
        plain(
                "sequence",
                value ->
                        PythonValues.isText(value)
                                || value instanceof java.util.List
                                || value instanceof Map
                                || value instanceof Undefined);
        plain("iterable", PythonValues::isIterable);
        plain("callable", value -> value instanceof Callable || value instanceof Undefined);
        plain("escaped", value -> value instanceof Markup);
        plain("lower", value -> Methods.isLower(Text.of(value)));
        plain("upper", value -> Methods.isUpper(Text.of(value)));
        plain("odd", value -> PythonValues.equal(PythonValues.binary("%", value, 2L), 1L));
        plain("even", value -> PythonValues.equal(PythonValues.binary("%", value, 2L), 0L));
        TESTS.put("divisibleby", TestFunctions::divisible);
        TESTS.put("in", TestFunctions::contained);
        TESTS.put("sameas", TestFunctions::same);
        TESTS.put("filter", (value, arguments) -> Filters.exists(name(value)));
        TESTS.put("test", (value, arguments) -> exists(name(value)));
        for (String name : new String[] {"==", "eq", "equalto"}) {
            TESTS.put(name, (value, arguments) -> PythonValues.equal(value, other(arguments)));
        }
        for (String name : new String[] {"!=", "ne"}) {
            TESTS.put(name, (value, arguments) -> !PythonValues.equal(value, other(arguments)));
        }
        order("<", "<", "lt", "lessthan");
        order("<=", "<=", "le");
        order(">", ">", "gt", "greaterthan");
        order(">=", ">=", "ge");
    }

    private TestFunctions() {}

    static boolean exists(String name) {
        return TESTS.containsKey(name);
    }

    static boolean apply(String name, Object value, Arguments arguments) {
        final Test test = TESTS.get(name);
        if (test == null) {
            throw new ValueException("test '" + name + "' is unknown or not implemented");
        }
        return test.holds(value, arguments);
    }

    private static void plain(String name, java.util.function.Predicate<Object> predicate) {
        TESTS.put(
                name,
                (value, arguments) -> {
                    arguments.end();
                    return predicate.test(value);
                });
    }

    private static void order(String operator, String... names) {
        for (String name : names) {
            TESTS.put(
                    name,
                    (value, arguments) -> Evaluator.ordered(operator, value, other(arguments)));
        }
    }

    private static Object other(Arguments arguments) {
        final Object other = arguments.take("other");
        arguments.end();
        return other;
    }

    /** What is looked for among names: what has no hash is an error, not merely none of them. */
    private static String name(Object value) {
        PythonValues.requireHash(value);
        return Text.of(value);
    }

    private static boolean divisible(Object value, Arguments arguments) {
        final Object by = arguments.take("num");
        arguments.end();
        return PythonValues.equal(PythonValues.binary("%", value, by), 0L);
    }

    private static boolean contained(Object value, Arguments arguments) {
        final Object container = arguments.take("seq");
        arguments.end();
        return PythonValues.contains(container, value);
    }

    /** Identity; equal numbers and strings of one type count as one object. */
    @SuppressWarnings("ReferenceEquality") // identity is the question here
    private static boolean same(Object value, Arguments arguments) {
        final Object other = other(arguments);
        final boolean comparable =
                value == null
                        ? other == null
                        : other != null && value.getClass() == other.getClass();
        return comparable
                && (value == other
                        || ((Numbers.isNumber(value) || PythonValues.isText(value))
                                && PythonValues.equal(value, other)));
    }
}
