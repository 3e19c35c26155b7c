package io.kvasir.prompt.jinja;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;

/** Templates that are made to cost: each ends with the name of a limit, none with an error. */
class HostileTemplateTest {
    private static final TemplateLimits LIMITS =
            new TemplateLimits(500_000, 1 << 20, 16 << 20, 500);
    private static final String GROW =
            "{% set ns = namespace(x=SEED) %}{% for i in range(99999) %}"
                    + "{% set ns.x = STEP %}{% endfor %}{{ ns.x|length }}";
    private static final String A100K = "{% set a = 'a' * 100000 %}";

    private static String grow(String seed, String step) {
        return GROW.replace("SEED", seed).replace("STEP", step);
    }

    private static String again(int times, String expression) {
        return A100K + "{% for i in range(" + times + ") %}{{ " + expression + " }}{% endfor %}";
    }

    private static String nested(String open, String inside, String close, int levels) {
        return open.repeat(levels) + inside + close.repeat(levels);
    }

    private static Map<String, String> templates() {
        return Map.ofEntries(
                Map.entry(
                        "nested loops",
                        nested("{% for a in range(99999) %}", "", "{% endfor %}", 3)),
                Map.entry("a huge repeat", "{{ 'a' * 2000000000 }}"),
                Map.entry("a repeat beyond all", "{{ 'aaaaaaaaaa' * 9223372036854775807 }}"),
                Map.entry("a huge repeated list", "{{ [1] * 2000000000 }}"),
                Map.entry("a doubled string", grow("'aaaaaaaaaa'", "ns.x ~ ns.x")),
                Map.entry("an added string", grow("'aaaaaaaaaa'", "ns.x + ns.x")),
                Map.entry("a doubled list", grow("[1]", "ns.x + ns.x")),
                Map.entry("a list that grows", grow("[1]", "ns.x + ['a' * 10000]")),
                Map.entry("a number that grows", grow("3", "ns.x + 7 ** 20000")),
                Map.entry("multiplied large numbers", grow("3", "(7 ** 10000) * (7 ** 10000)")),
                Map.entry("a nested list printed", grow("[]", "[ns.x]") + "{{ ns.x }}"),
                Map.entry("a nested list as JSON", grow("[]", "[ns.x]") + "{{ ns.x|tojson }}"),
                Map.entry("a nested list compared", grow("[]", "[ns.x]") + "{{ ns.x == [ns.x] }}"),
                Map.entry("a nested key", grow("[]", "(ns.x,)") + "{{ {ns.x: 1} }}"),
                Map.entry(
                        "a shared list printed",
                        grow("[]", "[ns.x, ns.x]").replace("99999", "60") + "{{ ns.x }}"),
                Map.entry(
                        "a shared list compared",
                        grow("[]", "[ns.x, ns.x]").replace("99999", "60")
                                + "{% set b = ns.x %}{{ [ns.x, 1] == [b, 2] }}"),
                Map.entry(
                        "a shared list hashed",
                        grow("[]", "[ns.x, ns.x]").replace("99999", "60") + "{{ {}[ns.x] }}"),
                Map.entry("filters on filters", grow("[1]", "ns.x|map('string')")),
                Map.entry(
                        "a namespace in itself",
                        "{% set n = namespace() %}{% set n.n = n %}{{ n }}"),
                Map.entry("deep parentheses", "{{ " + nested("(", "1", ")", 200_000) + " }}"),
                Map.entry("deep lists", "{{ " + nested("[", "1", "]", 200_000) + " }}"),
                Map.entry("deep signs", "{{ " + "-".repeat(200_000) + "1 }}"),
                Map.entry("deep negations", "{{ " + "not ".repeat(200_000) + "1 }}"),
                Map.entry("deep conditions", "{{ " + "1 if 0 else ".repeat(200_000) + "1 }}"),
                Map.entry("a long sum", "{{ 1" + " + 1".repeat(200_000) + " }}"),
                Map.entry("long attributes", "{{ a" + ".b".repeat(200_000) + " }}"),
                Map.entry("long filters", "{{ 'a'" + "|upper".repeat(200_000) + " }}"),
                Map.entry("deep ifs", nested("{% if 1 %}", "x", "{% endif %}", 100_000)),
                Map.entry("deep targets", "{% set " + nested("(", "a", ")", 100_000) + " = 1 %}"),
                Map.entry(
                        "a recursive loop without end",
                        "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
                Map.entry(
                        "recursive loops that call twice",
                        "{% for x in range(30) recursive %}{% if x %}{{ loop(range(x)) }}"
                                + "{{ loop(range(x)) }}{% endif %}{% endfor %}"),
                Map.entry("wide tabs", "{{ ('\\t' * 100000).expandtabs(1000000) }}"),
                Map.entry("tabs", again(999, "a.replace('a', '\\t').expandtabs(1)")),
                Map.entry("groups", again(999, "(range(99999)|groupby(0)|list)")),
                Map.entry(
                        "marked replacements", A100K + "{{ (a|safe).replace('a', '<' * 99999) }}"),
                Map.entry("marked parts", again(9999, "(a|safe).split('a')|length")),
                Map.entry(
                        "lines with ends", again(9999, "('\\n' * 99999).splitlines(true)|length")),
                Map.entry("title case", again(9999, "a.istitle()")),
                Map.entry("a macro without end", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"),
                Map.entry(
                        "macros that call twice",
                        "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}"
                                + "{% endmacro %}{{ m(40) }}"),
                Map.entry(
                        "capital sigmas",
                        "{% for i in range(99999) %}{{ ('Σ' * 99999)|lower|length }}{% endfor %}"),
                Map.entry("a wide centre", "{{ 'a'|center(2000000000000) }}"),
                Map.entry("a wide justification", "{{ 'a'.ljust(9223372036854775807) }}"),
                Map.entry("zeros", "{{ 'a'.zfill(2000000000) }}"),
                Map.entry("a wide indent", "{{ ('a\n' * 100000)|indent(2000000) }}"),
                Map.entry("a wide JSON", "{{ [[[[[1]]]]]|tojson(indent=2000000000) }}"),
                Map.entry("formats", "{{ ('{0:>999999}' * 100000).format(1) }}"),
                Map.entry("percent formats", "{{ '%(a)999999d' * 1000 % {'a': 1} }}"),
                Map.entry(
                        "fractions",
                        "{% for i in range(99999) %}{{ '%.999999f' % 0.1 }}{% endfor %}"),
                Map.entry("a join", A100K + "{{ ([a] * 99999)|join(a) }}"),
                Map.entry("a joined method", A100K + "{{ a.join([a] * 99999) }}"),
                Map.entry("a replacement", A100K + "{{ a.replace('a', a) }}"),
                Map.entry("a replacement of nothing", A100K + "{{ a|replace('', a) }}"),
                Map.entry("a search", "{{ ('a' * 9000000).find('a' * 4000000 ~ 'b') }}"),
                Map.entry("a test for containment", "{{ ('a' * 4000000 ~ 'b') in 'a' * 9000000 }}"),
                Map.entry("counts", again(99, "a.count('a')")),
                Map.entry("counts of nothing", again(999, "a.count('')")),
                Map.entry("upper case", again(999, "a.isupper()")),
                Map.entry("tests for upper case", again(999, "a is upper")),
                Map.entry("lower case", again(999, "a.islower()")),
                Map.entry("a batch", "{{ [1]|batch(2000000000000, 'x')|list }}"),
                Map.entry("slices", "{{ [1]|slice(9000000000000)|list }}"),
                Map.entry("unique numbers", "{{ range(99999)|unique|list|length }}"),
                Map.entry("numbers as keys", "{{ dict(range(99999)|batch(2)|list) }}"),
                Map.entry("characters", "{% for c in 'a' * 90000000 %}{% endfor %}"),
                Map.entry(
                        "sorted again and again",
                        "{% for i in range(99999) %}{{ range(99999)|sort|first }}{% endfor %}"),
                Map.entry(
                        "output",
                        "{% for i in range(99999) %}{% for j in range(99) %}"
                                + "{{ 'aaaaaaaaaaaaaaaa' }}{% endfor %}{% endfor %}"),
                Map.entry("dates", "{{ strftime_now('%c' * 1000000) }}"),
                Map.entry("many tags", "{{a}}".repeat(400_000)),
                Map.entry("names for the messages", assignments(30_000)),
                Map.entry("a range of lists", "{{ (range(99999)|list * 500)|length }}"));
    }

    private static String assignments(int count) {
        final StringBuilder text = new StringBuilder("{% set a0 = messages %}");
        for (int i = 1; i < count; i++) {
            text.append("{% set a").append(i).append(" = a").append(i - 1).append(" %}");
        }
        return text.toString();
    }

    private static TemplateException failure(String source) {
        return assertThrows(
                TemplateException.class,
                () -> ChatTemplate.compile(source, LIMITS).render(Map.of()));
    }

    @TestFactory
    List<DynamicTest> endsWithTheNameOfALimit() {
        final List<DynamicTest> tests = new ArrayList<>();
        templates()
                .forEach(
                        (name, source) ->
                                tests.add(
                                        DynamicTest.dynamicTest(
                                                name,
                                                () -> {
                                                    final TemplateException error = failure(source);
                                                    assertTrue(
                                                            error.getMessage()
                                                                    .contains("template-max-"),
                                                            error.getMessage());
                                                    assertEquals(
                                                            TemplateException.Kind.LIMIT,
                                                            error.kind());
                                                })));
        return tests;
    }

    @TestFactory
    List<DynamicTest> failsOnOddValuesLikeOnAnyOthers() {
        final List<DynamicTest> tests = new ArrayList<>();
        for (String source :
                new String[] {
                    "{{ 9" + "9".repeat(5000) + " }}",
                    "{{ 10 ** 5000 }}",
                    "{{ 0x" + "f".repeat(100_000) + " }}",
                    "{{ (7 ** 20000) * (7 ** 20000) }}",
                    "{{ [1]|map(attribute='99999999999999999999')|list }}",
                    "{{ '{99999999999}'.format(1) }}",
                    "{{ (1e308 * 10)|round(1, 'ceil') }}",
                    "{{ 1|int(base=99) }}{{ cycler(none) }}"
                }) {
            tests.add(
                    DynamicTest.dynamicTest(
                            source.substring(0, Math.min(40, source.length())),
                            () -> assertTrue(failure(source).getMessage().length() < 1000)));
        }
        return tests;
    }

    @Test
    void takesLongNumbersForNone() {
        assertEquals("7 0", render("{{ ('9' * 5000)|int(7) }} {{ ('9_' * 900000)|int }}"));
        assertEquals("0.0", render("{{ ('9_' * 900000)|float }}"));
    }

    @Test
    void widthsAreExact() {
        assertEquals("2000001", render("{{ ('a'.ljust(2000001))|length }}"));
        assertEquals("66001", render("{{ 'a\nb'|indent(65998)|length }}"));
        assertEquals(
                "0.1000000000000000055511151231257827021181583404541015625" + "0".repeat(1945),
                render("{{ '%.2000f' % 0.1 }}"));
    }

    private static String render(String source) {
        return ChatTemplate.compile(source).render(Map.of());
    }

    @Test
    void memoryGrowsWithWhatIsGiven() {
        final TemplateLimits limits = new TemplateLimits(1_000_000, 1 << 20, 1 << 20, 100);
        final ChatTemplate template = ChatTemplate.compile("{{ 'a' ~ content ~ 'b' }}", limits);
        final String content = "x".repeat(600_000);
        assertEquals("a" + content + "b", template.render(Map.of("content", content)));
    }

    @Test
    void anInterruptedThreadGivesUp() {
        final ChatTemplate template =
                ChatTemplate.compile("{% for a in range(99999) %}{% endfor %}");
        Thread.currentThread().interrupt();
        try {
            assertThrows(CancellationException.class, () -> template.render(Map.of()));
        } finally {
            assertTrue(Thread.interrupted());
        }
    }

    @Test
    void aTemplateKnowsItsSize() {
        final long small = ChatTemplate.compile("hi").sizeBytes();
        final String text = "{% if false %}" + "x".repeat(1_000_000) + "{% endif %}hi";
        assertTrue(small < 10_000, "bytes: " + small);
        assertTrue(ChatTemplate.compile(text).sizeBytes() >= 2_000_000);
    }

    @ParameterizedTest
    @CsvSource({
        "-1, 1, 1, 1, maxSteps=-1",
        "1, -1, 1, 1, maxOutputChars=-1",
        "1, 1, -1, 1, maxMemoryBytes=-1",
        "1, 1, 1, -1, maxDepth=-1"
    })
    void limitsAreNotNegative(long steps, long chars, long bytes, int depth, String said) {
        assertEquals(
                said + " must be 0 or more",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> new TemplateLimits(steps, chars, bytes, depth))
                        .getMessage());
    }
}
