package io.kvasir.router.settings;

import java.math.BigInteger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * One knob: its name, type, default, range and meaning. The name is its flag without dashes, its
 * YAML key, and, in capitals after {@code KVASIR_}, its environment variable.
 *
 * <p>A constant of this type is all that a knob needs: a {@link SettingTable} makes flags, keys,
 * help and documents of it, {@link Settings#get} reads it.
 *
 * @param <T> type of its value
 */
public final class Setting<T> {
    private static final Pattern USER_INFO = Pattern.compile("(?<=//)[^/\\s]*@");
    private static final Pattern ADDRESS = Pattern.compile("[^\\s,]+");
    private static final Pattern WHOLE = Pattern.compile("[+-]?[0-9]([0-9_]*[0-9])?");
    private static final Pattern DECIMAL =
            Pattern.compile("[+-]?([0-9.]+([eE][+-]?[0-9]+)?|NaN|Infinity)");
    private static final String LEFT_OUT = "***@";

    /** What environment variables of settings begin with. */
    public static final String VARIABLE_PREFIX = "KVASIR_";

    private final String name;
    private final Format<T> format;
    private final T usual;
    private final Predicate<T> allowed;
    private final String range;
    private final String doc;
    private final List<String> aliases;
    private final List<Variable> variables;
    private final boolean live;

    /** A further environment variable, and what makes its text one of the setting. */
    private record Variable(String name, UnaryOperator<String> reading) {}

    /** How values are written; {@code label} stands for one in help texts. */
    private record Format<T>(
            String label,
            Function<List<String>, T> parse,
            Function<T, String> print,
            boolean list) {
        static <T> Format<T> one(
                String label, Function<String, T> parse, Function<T, String> print) {
            return new Format<>(label, texts -> parse.apply(texts.getLast()), print, false);
        }
    }

    private Setting(
            String name,
            Format<T> format,
            T usual,
            Predicate<T> allowed,
            String range,
            String doc,
            List<String> aliases,
            List<Variable> variables,
            boolean live) {
        this.name = name;
        this.format = format;
        this.usual = usual;
        this.allowed = allowed;
        this.range = range;
        this.doc = doc;
        this.aliases = aliases;
        this.variables = variables;
        this.live = live;
    }

    private static <T> Setting<T> of(
            String name,
            Format<T> format,
            T usual,
            Predicate<T> allowed,
            String range,
            String doc) {
        return new Setting<>(name, format, usual, allowed, range, doc, List.of(), List.of(), false);
    }

    /** A whole number of {@code least..most}; null for a default that is made at start. */
    public static Setting<Integer> integer(
            String name, Integer usual, int least, int most, String doc) {
        return of(
                name,
                Format.one("N", text -> Math.toIntExact(whole(text)), String::valueOf),
                usual,
                value -> value >= least && value <= most,
                range(least, most),
                doc);
    }

    /** A whole number of {@code least..most}; null for a default that is made at start. */
    public static Setting<Long> number(String name, Long usual, long least, long most, String doc) {
        return of(
                name,
                Format.one("N", Setting::whole, String::valueOf),
                usual,
                value -> value >= least && value <= most,
                range(least, most),
                doc);
    }

    /** A finite number of {@code least..most}. */
    public static Setting<Double> decimal(
            String name, double usual, double least, double most, String doc) {
        return of(
                name,
                Format.one("X", Setting::decimal, Setting::plain),
                usual,
                value -> value >= least && value <= most && !Double.isInfinite(value),
                most == Double.POSITIVE_INFINITY
                        ? plain(least) + " or more, finite"
                        : plain(least) + ".." + plain(most),
                doc);
    }

    /** On or off. */
    public static Setting<Boolean> bool(String name, boolean usual, String doc) {
        return of(
                name,
                Format.one(null, Setting::bool, String::valueOf),
                usual,
                value -> true,
                "true, false",
                doc);
    }

    /**
     * Milliseconds where the name ends with {@code -ms}, else seconds; at most some 24 days. One
     * between none and the first of them is refused: it would be printed, and read, as none.
     */
    public static Setting<Duration> duration(String name, long usual, int least, String doc) {
        final TimeUnit unit = name.endsWith("-ms") ? TimeUnit.MILLISECONDS : TimeUnit.SECONDS;
        return of(
                name,
                Format.one(
                        unit == TimeUnit.SECONDS ? "S" : "MS",
                        text -> Duration.of(whole(text), unit.toChronoUnit()),
                        value ->
                                isPart(value, unit)
                                        ? value.toString()
                                        : Long.toString(unit.convert(value))),
                Duration.of(usual, unit.toChronoUnit()),
                value ->
                        !isPart(value, unit)
                                && unit.convert(value) >= least
                                && unit.convert(value) <= Integer.MAX_VALUE,
                range(least, Integer.MAX_VALUE),
                doc);
    }

    /** Whether a time is less than a unit, in either direction, but not none. */
    private static boolean isPart(Duration value, TimeUnit unit) {
        return unit.convert(value) == 0 && !value.isZero();
    }

    /** One of the constants of an enum, in small letters with dashes. */
    public static <E extends Enum<E>> Setting<E> choice(String name, E usual, String doc) {
        final List<E> all = Arrays.asList(usual.getDeclaringClass().getEnumConstants());
        final String range = String.join(", ", all.stream().map(Setting::spelling).toList());
        return of(
                name,
                Format.one("NAME", text -> oneOf(all, text), Setting::spelling),
                usual,
                value -> true,
                range,
                doc);
    }

    /** A text or path; null for none. */
    public static <T> Setting<T> text(
            String name, String label, Function<String, T> parse, T usual, String doc) {
        return of(
                name,
                Format.one(label, parse, String::valueOf),
                usual,
                value -> !value.toString().isBlank(),
                "not blank",
                doc);
    }

    /** Any number of elements: a repeated flag, a YAML list, or words in one variable. */
    public static <E> Setting<List<E>> list(
            String name, String label, Function<String, E> element, String doc) {
        return of(
                name,
                new Format<>(
                        label,
                        texts -> texts.stream().map(element).toList(),
                        all -> String.join(" ", all.stream().map(String::valueOf).toList()),
                        true),
                List.of(),
                value -> true,
                "a list",
                doc);
    }

    /** The same with one more allowed value. */
    public Setting<T> or(T value) {
        return new Setting<>(
                name,
                format,
                usual,
                allowed.or(Predicate.isEqual(value)),
                format.print.apply(value) + " or " + range,
                doc,
                aliases,
                variables,
                live);
    }

    /**
     * The same with one more condition, which {@code words} say; it may throw an {@link
     * IllegalArgumentException} that has the name, the value and a reason of its own.
     */
    public Setting<T> where(Predicate<T> condition, String words) {
        return new Setting<>(
                name,
                format,
                usual,
                allowed.and(condition),
                range + ", " + words,
                doc,
                aliases,
                variables,
                live);
    }

    /** The same with a former name, which stays a flag, a key and a variable. */
    public Setting<T> alias(String formerName) {
        return new Setting<>(
                name,
                format,
                usual,
                allowed,
                range,
                doc,
                with(aliases, formerName),
                variables,
                live);
    }

    /** The same with a further environment variable, read after its own. */
    public Setting<T> variable(String variable) {
        return variable(variable, UnaryOperator.identity());
    }

    /**
     * The same with a further environment variable that is written in another way.
     *
     * @param reading makes a text of this setting of the variable's; what it does not understand it
     *     returns as it is
     */
    public Setting<T> variable(String variable, UnaryOperator<String> reading) {
        return new Setting<>(
                name,
                format,
                usual,
                allowed,
                range,
                doc,
                aliases,
                with(variables, new Variable(variable, reading)),
                live);
    }

    /** The same as one that may change while what it is set for runs. */
    public Setting<T> live() {
        return new Setting<>(name, format, usual, allowed, range, doc, aliases, variables, true);
    }

    private static <E> List<E> with(List<E> all, E one) {
        final List<E> more = new ArrayList<>(all);
        more.add(one);
        return List.copyOf(more);
    }

    /** Words joined by dashes. */
    public String name() {
        return name;
    }

    /** Value where nothing is set; null if it is made at start or must be set. */
    public T usual() {
        return usual;
    }

    /** Allowed values in words. */
    public String range() {
        return range;
    }

    /** Meaning, in sentences. */
    public String doc() {
        return doc;
    }

    /** What stands for a value in help texts; null for on and off. */
    public String label() {
        return format.label;
    }

    /** Whether it takes any number of elements. */
    public boolean isList() {
        return format.list;
    }

    /** Whether it may change while what it is set for runs; if not, it needs a start. */
    public boolean isLive() {
        return live;
    }

    /** Former names. */
    public List<String> aliases() {
        return aliases;
    }

    /** Environment variables, its own first. */
    public List<String> variables() {
        final List<String> all = new ArrayList<>();
        all.add(variableOf(name));
        variables.forEach(variable -> all.add(variable.name));
        return all;
    }

    /** The text of one of its variables, as it is written in flags and files. */
    String read(String variable, String text) {
        for (Variable further : variables) {
            if (further.name.equals(variable)) {
                return further.reading.apply(text);
            }
        }
        return text;
    }

    /** Environment variables of its former names, read after its own and before the others. */
    public List<String> formerVariables() {
        return aliases.stream().map(Setting::variableOf).toList();
    }

    /** The environment variable of a name. */
    public static String variableOf(String name) {
        return VARIABLE_PREFIX + name.toUpperCase(Locale.ROOT).replace('-', '_');
    }

    /** A value as it is written in flags, files and documents. */
    public String print(T value) {
        return format.print.apply(value);
    }

    /** The default as it is written; empty where there is none. */
    public String printUsual() {
        return usual == null ? "" : print(usual);
    }

    /**
     * Reads a value.
     *
     * @param text as it is written in flags, files and variables; elements of a list are words
     * @return a value in range
     * @throws IllegalArgumentException if it is none; the message has name, text and range
     * @throws NullPointerException if there is none; the message has the name
     */
    public T parse(String text) {
        Objects.requireNonNull(text, this::isNull);
        return parse(format.list ? List.of(text.strip().split("\\s+")) : List.of(text));
    }

    /**
     * Reads a value.
     *
     * @param texts its elements, or the only text of what is no list
     * @return a value in range
     * @throws IllegalArgumentException if it is none; the message has name, text and range, and a
     *     line for each element that is wrong
     */
    public T parse(List<String> texts) {
        if (format.list && texts.size() > 1) {
            WrongSettingsException.throwIfAnyFails(texts, this::element);
        }
        return check(read(texts));
    }

    /**
     * Reads one element of a list, whatever must hold for the list as a whole.
     *
     * @return a list of it alone
     * @throws IllegalArgumentException if it is none; the message has name and text
     */
    public T element(String text) {
        return read(List.of(text));
    }

    private T read(List<String> texts) {
        final String text = withoutPasswords(String.join(" ", texts));
        try {
            texts.forEach(Setting::checkPasswords);
            return format.parse.apply(texts);
        } catch (ArithmeticException e) {
            throw outOfRange(text);
        } catch (NumberFormatException e) {
            final String kind = DECIMAL.matcher(text).matches() ? "whole number" : "number";
            throw new IllegalArgumentException(
                    name + "=" + text + " is not a " + kind + "; range: " + range, e);
        } catch (IllegalArgumentException e) {
            final String of = name + "=" + text + " ";
            throw new IllegalArgumentException(
                    of + String.valueOf(e.getMessage()).replace("\n", "\n" + of), e);
        }
    }

    /**
     * Checks a value.
     *
     * @param value in question
     * @return the same
     * @throws IllegalArgumentException if it is out of range; the message has name, value and range
     * @throws NullPointerException if it is null; the message has the name
     */
    public T check(T value) {
        Objects.requireNonNull(value, this::isNull);
        if (!allowed.test(value)) {
            throw outOfRange(print(value));
        }
        return value;
    }

    private String isNull() {
        return "the value of " + name + " is null";
    }

    private IllegalArgumentException outOfRange(String value) {
        return new IllegalArgumentException(
                name + "=" + value + " is out of range; range: " + range);
    }

    /**
     * A text without what stands before the host of addresses in it: user and password, also where
     * they have characters that no URL may have there, or the address has no scheme.
     */
    public static String withoutPasswords(String text) {
        final String usual = USER_INFO.matcher(text).replaceAll(LEFT_OUT);
        return usual.indexOf('@') < 0
                ? usual
                : ADDRESS.matcher(usual)
                        .replaceAll(
                                address ->
                                        Matcher.quoteReplacement(withoutPassword(address.group())));
    }

    /** One address without what is before its last @: where that has a colon and is no path. */
    private static String withoutPassword(String address) {
        final int scheme = address.indexOf("//");
        final int from = scheme < 0 ? 0 : scheme + 2;
        final int at = address.lastIndexOf('@');
        final int colon = address.indexOf(':', from);
        if (colon < 0 || colon > at || address.startsWith(LEFT_OUT, from)) {
            return address;
        }
        final int slash = address.indexOf('/', from);
        final boolean isPath = slash >= 0 && slash < colon;
        final boolean isPair = scheme < 0 && address.lastIndexOf('=', colon) >= 0;
        return isPath || isPair
                ? address
                : address.substring(0, from) + LEFT_OUT + address.substring(at + 1);
    }

    /**
     * Refuses a text from which {@link #withoutPasswords} has left something out.
     *
     * @throws IllegalArgumentException saying so
     */
    public static void checkPasswords(String text) {
        if (text.contains("//" + LEFT_OUT)) {
            throw new IllegalArgumentException(
                    "has *** where a user and a password were left out; put them in, or take the"
                            + " *** and the @ away");
        }
    }

    @Override
    public String toString() {
        return name;
    }

    private static String range(long least, long most) {
        if (most == Integer.MAX_VALUE || most == Long.MAX_VALUE) {
            return least == Long.MIN_VALUE ? "whole numbers" : least + " or more";
        }
        return least + ".." + most;
    }

    /** An {@link ArithmeticException} for one that a long has no room for. */
    private static long whole(String text) {
        return new BigInteger(written(WHOLE, text).replace("_", "")).longValueExact();
    }

    /** Likewise; infinity is what is written so. */
    private static double decimal(String text) {
        final double value = Double.parseDouble(written(DECIMAL, text));
        if (Double.isInfinite(value) && !text.endsWith("Infinity")) {
            throw new ArithmeticException(text);
        }
        return value;
    }

    /**
     * Java reads more as a number: digits of all scripts, hexadecimal ones, a letter at the end.
     */
    private static String written(Pattern form, String text) {
        if (!form.matcher(text).matches()) {
            throw new NumberFormatException(text);
        }
        return text;
    }

    private static String plain(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15
                ? Long.toString((long) value)
                : Double.toString(value);
    }

    private static boolean bool(String text) {
        return switch (text) {
            case "true" -> true;
            case "false" -> false;
            default -> throw new IllegalArgumentException("must be true or false");
        };
    }

    private static String spelling(Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }

    private static <E extends Enum<E>> E oneOf(List<E> all, String text) {
        for (E each : all) {
            if (spelling(each).equalsIgnoreCase(text.replace('_', '-'))) {
                return each;
            }
        }
        throw new IllegalArgumentException(
                "is none of: " + String.join(", ", all.stream().map(Setting::spelling).toList()));
    }
}
