package io.kvasir.prompt.jinja;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.prompt.files.TestFiles;

import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Every rendering equals, byte for byte, what the reference implementation wrote; see ORIGIN.md.
 */
class ReferenceRenderingTest {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Clock CLOCK =
            Clock.fixed(Instant.parse("2026-03-07T09:05:04.123456Z"), ZoneOffset.UTC);

    @SuppressWarnings("unchecked")
    private static Map<String, Object> variables(JsonNode node) {
        return MAPPER.convertValue(node, Map.class);
    }

    private static void check(String source, Map<String, Object> variables, JsonNode expected) {
        if (expected.has("text")) {
            assertEquals(
                    expected.get("text").asText(),
                    ChatTemplate.compile(source).render(variables, CLOCK),
                    source);
            return;
        }
        final TemplateException error =
                assertThrows(
                        TemplateException.class,
                        () -> ChatTemplate.compile(source).render(variables, CLOCK),
                        source + " should fail: " + expected.get("error").asText());
        if (expected.get("syntax").asBoolean()) {
            assertEquals(TemplateException.Kind.SYNTAX, error.kind(), source);
        }
        if (error.kind() == TemplateException.Kind.RAISED) {
            assertEquals(expected.get("error").asText(), error.reason());
        }
    }

    @TestFactory
    List<DynamicTest> rendersEverySnippetLikeTheReference() throws IOException {
        final JsonNode file = MAPPER.readTree(TestFiles.read("jinja/snippets.json"));
        final Map<String, Object> variables = variables(file.get("variables"));
        final List<DynamicTest> tests = new ArrayList<>();
        for (JsonNode snippet : file.get("snippets")) {
            final String source = snippet.get("template").asText();
            tests.add(
                    DynamicTest.dynamicTest(
                            tests.size() + ": " + source, () -> check(source, variables, snippet)));
        }
        return tests;
    }

    @TestFactory
    List<DynamicTest> rendersEveryConversationLikeTheReference() throws IOException {
        final JsonNode inputs = MAPPER.readTree(TestFiles.read("jinja/inputs.json"));
        final List<DynamicTest> tests = new ArrayList<>();
        for (Map.Entry<String, JsonNode> template :
                MAPPER.readTree(TestFiles.read("jinja/expected.json")).properties()) {
            final String source =
                    new String(
                            TestFiles.read("jinja/templates/" + template.getKey() + ".jinja"),
                            StandardCharsets.UTF_8);
            for (Map.Entry<String, JsonNode> input : template.getValue().properties()) {
                tests.add(
                        DynamicTest.dynamicTest(
                                template.getKey() + " with " + input.getKey(),
                                () ->
                                        check(
                                                source,
                                                variables(inputs.get(input.getKey())),
                                                input.getValue())));
            }
        }
        assertTrue(tests.size() > 150, "renderings: " + tests.size());
        return tests;
    }

    @Test
    void namesTheLineOfWhatIsNotImplemented() {
        for (String source :
                new String[] {
                    "a\n{% include 'x' %}",
                    "a\n{{ x|striptags }}",
                    "a\n{{ lipsum() }}",
                    "\n{% block b %}{% endblock %}",
                    "{# c #}\n{{ x is nosuch }}",
                    "a\n{% import 'x' as y %}",
                    "\n{% autoescape true %}"
                }) {
            final TemplateException error =
                    assertThrows(
                            TemplateException.class, () -> ChatTemplate.compile(source), source);
            assertEquals(TemplateException.Kind.SYNTAX, error.kind());
            assertEquals(2, error.line(), error.getMessage());
        }
    }

    @Test
    void namesTheLineWhereRenderingFailed() {
        final ChatTemplate template =
                ChatTemplate.compile("{% if true %}\n\n{{ 1 + 'a' }}\n{% endif %}");
        final TemplateException error =
                assertThrows(TemplateException.class, () -> template.render(Map.of(), CLOCK));
        assertEquals(3, error.line());
        assertEquals(TemplateException.Kind.RUNTIME, error.kind());
        final ChatTemplate refusing = ChatTemplate.compile("x\n{{ raise_exception('No tools!') }}");
        final TemplateException raised =
                assertThrows(TemplateException.class, () -> refusing.render(Map.of(), CLOCK));
        assertEquals("No tools!", raised.reason());
        assertEquals(2, raised.line());
    }

    @Test
    void refusesWhatPythonHasAndThisInterpreterHasNot() {
        for (String source :
                new String[] {
                    "{{ 'a'.encode() }}",
                    "{{ '%e' % 1.5 }}",
                    "{{ '{:g}'.format(1.5) }}",
                    "{{ (5).bit_length() }}",
                    "{{ (-1) ** 0.5 }}",
                    "{{ (-8.0) ** (1 / 3) }}"
                }) {
            final TemplateException error =
                    assertThrows(
                            TemplateException.class,
                            () -> ChatTemplate.compile(source).render(Map.of(), CLOCK),
                            source);
            assertTrue(error.reason().contains("not implemented"), error.reason());
        }
    }

    /** Its text has an address in the reference: never the same twice, and never meant. */
    @Test
    void aGeneratorIsNoText() {
        for (String source :
                new String[] {
                    "{{ l|map('string') }}", "{{ l|batch(2) }}", "{{ 'x' ~ (l|select) }}",
                }) {
            final TemplateException error =
                    assertThrows(
                            TemplateException.class,
                            () ->
                                    ChatTemplate.compile(source)
                                            .render(Map.of("l", List.of()), CLOCK),
                            source);
            assertEquals(
                    "a generator has no text that could be printed; the filter list makes one that"
                            + " has",
                    error.reason(),
                    source);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"pprint", "random", "striptags", "urlize"})
    void aFilterThatIsMissingIsNamedWhenTheTemplateIsCompiled(String name) {
        final TemplateException error =
                assertThrows(
                        TemplateException.class,
                        () ->
                                ChatTemplate.compile(
                                        "a\n{% if false %}{{ x|" + name + " }}{% endif %}"));
        assertEquals(TemplateException.Kind.SYNTAX, error.kind());
        assertEquals(2, error.line());
        assertEquals("filter '" + name + "' is unknown or not implemented", error.reason());
    }

    @Test
    void endsEndlessRecursionWithAnError() {
        final ChatTemplate template =
                ChatTemplate.compile("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}");
        assertThrows(TemplateException.class, () -> template.render(Map.of(), CLOCK));
    }
}
