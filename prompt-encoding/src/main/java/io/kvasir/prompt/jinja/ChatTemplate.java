package io.kvasir.prompt.jinja;

import java.time.Clock;
import java.time.ZoneId;
import java.time.ZonedDateTime;
import java.util.List;
import java.util.Map;

/**
 * A chat template: the part of Jinja 2 that Hugging Face chat templates use, with the settings they
 * are written for ({@code trim_blocks}, {@code lstrip_blocks}, loop controls, {@code generation}
 * blocks, immutable sandbox, {@code raise_exception}, {@code strftime_now}, Python-style {@code
 * tojson}). Renders the same bytes as the reference implementation; what is not implemented is an
 * error when the template is compiled, or when a value makes it needed.
 *
 * <p>Immutable; any number of threads may render at once.
 */
public final class ChatTemplate {
    private final List<Stmt> body;
    private final boolean contentParts;
    private final boolean partsAtSglang;
    private final TemplateLimits limits;
    private final long sizeBytes;

    private ChatTemplate(
            List<Stmt> body,
            boolean contentParts,
            boolean partsAtSglang,
            TemplateLimits limits,
            long sizeBytes) {
        this.body = body;
        this.contentParts = contentParts;
        this.partsAtSglang = partsAtSglang;
        this.limits = limits;
        this.sizeBytes = sizeBytes;
    }

    /**
     * Compiles a template under the {@linkplain TemplateLimits#DEFAULT usual limits}.
     *
     * @param source the template's text
     * @return the compiled template
     * @throws TemplateException of kind SYNTAX, with the line, or LIMIT
     */
    public static ChatTemplate compile(String source) {
        return compile(source, TemplateLimits.DEFAULT);
    }

    /**
     * Compiles a template.
     *
     * @param source the template's text
     * @param limits of compiling it and of each rendering
     * @return the compiled template
     * @throws TemplateException of kind SYNTAX, with the line, or LIMIT
     * @throws java.util.concurrent.CancellationException if the thread is interrupted
     */
    public static ChatTemplate compile(String source, TemplateLimits limits) {
        final Budget budget = new Budget(limits);
        return budget.in(
                () -> {
                    final List<Stmt> body = Parser.parse(source);
                    return new ChatTemplate(
                            body,
                            ContentFormat.iteratesOverContent(body),
                            ContentFormat.isPartsAtSglang(source, body),
                            limits,
                            budget.bytesTaken());
                });
    }

    /** About how much memory the compiled template takes, its text included. */
    public long sizeBytes() {
        return sizeBytes;
    }

    /**
     * Whether the template walks through the parts of a message's content (the "openai" content
     * format). If not, content has to be given as one string.
     */
    public boolean expectsContentParts() {
        return contentParts;
    }

    /** Whether SGLang gives the template a message's content as parts, by rules of its own. */
    public boolean expectsPartsAtSglang() {
        return partsAtSglang;
    }

    /**
     * Renders the template with the system's clock.
     *
     * @param variables by name: null, Boolean, numbers, String, and List and Map of such; not
     *     changed
     * @return the text
     * @throws TemplateException of kind RAISED or RUNTIME, with the line, or LIMIT
     * @throws IllegalArgumentException for a value of another type
     */
    public String render(Map<String, Object> variables) {
        return render(variables, Clock.system(ZoneId.systemDefault()));
    }

    /**
     * Renders the template.
     *
     * @param variables as in {@link #render(Map)}
     * @param clock what {@code strftime_now} reads
     * @return the text
     * @throws TemplateException of kind RAISED or RUNTIME, with the line, or LIMIT
     * @throws java.util.concurrent.CancellationException if the thread is interrupted
     * @throws IllegalArgumentException for a value of another type
     */
    public String render(Map<String, Object> variables, Clock clock) {
        final Budget budget = new Budget(limits);
        return budget.in(
                () -> {
                    final Scope scope = new Scope(globals(clock));
                    variables.forEach(
                            (name, value) -> scope.set(name, PythonValues.imported(value)));
                    return new Evaluator(budget).render(body, scope);
                });
    }

    private static Scope globals(Clock clock) {
        final Scope globals = new Scope(null);
        define(globals, "range", Range::of);
        define(globals, "dict", PythonValues::newDict);
        define(globals, "namespace", Namespace::new);
        define(globals, "cycler", Cycler::new);
        define(globals, "joiner", Joiner::new);
        define(globals, "raise_exception", ChatTemplate::raise);
        define(
                globals,
                "strftime_now",
                arguments -> {
                    final Object format = arguments.take("format");
                    arguments.end();
                    return Strftime.format(Text.of(format), ZonedDateTime.now(clock));
                });
        return globals;
    }

    private static void define(Scope globals, String name, Callable function) {
        globals.set(name, function);
    }

    private static Object raise(Arguments arguments) {
        final Object message = arguments.take("message");
        arguments.end();
        throw new ValueException(Text.of(message), true);
    }
}
