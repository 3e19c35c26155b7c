package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;

/** Renders one template once: walks the statements and keeps the output. One thread. */
final class Evaluator {
    /** How a body ended. */
    private enum Flow {
        NEXT,
        BREAK,
        CONTINUE
    }

    /** Steps of making the variables of a block. */
    private static final int SCOPE_STEPS = 3;

    /** What a macro keeps: itself and the variables of the block that it was defined in. */
    private static final int MACRO_BYTES = 256;

    private final Budget budget;
    private StringBuilder out = new StringBuilder();

    Evaluator(Budget budget) {
        this.budget = budget;
    }

    /**
     * Renders statements and returns their text.
     *
     * @throws TemplateException with the line of the statement that failed
     */
    String render(List<Stmt> body, Scope scope) {
        return captured(() -> run(body, scope));
    }

    private String captured(Runnable writer) {
        final StringBuilder outer = out;
        out = new StringBuilder();
        try {
            writer.run();
            budget.text(out.length());
            return out.toString();
        } finally {
            out = outer;
        }
    }

    // --- statements ---

    private Flow run(List<Stmt> body, Scope scope) {
        for (Stmt statement : body) {
            final Flow flow = run(statement, scope);
            if (flow != Flow.NEXT) {
                return flow;
            }
        }
        return Flow.NEXT;
    }

    private void print(String text) {
        budget.text(text.length());
        out.append(text);
        budget.output(out.length());
    }

    /** Variables of a block inside of another one. */
    Scope inner(Scope scope) {
        budget.steps(SCOPE_STEPS);
        return new Scope(scope);
    }

    private Flow run(Stmt statement, Scope scope) {
        budget.step();
        budget.enter();
        final Flow flow = execute(statement, scope);
        budget.leave();
        return flow;
    }

    private Flow execute(Stmt statement, Scope scope) {
        try {
            switch (statement) {
                case Stmt.Data data -> print(data.text());
                case Stmt.Print print -> print(Text.of(evaluate(print.expression(), scope)));
                case Stmt.If choice -> {
                    return run(chosen(choice, scope), scope);
                }
                case Stmt.For loop -> loop(loop, evaluate(loop.items(), scope), 1, scope);
                case Stmt.Assign assign ->
                        assign(assign.target(), evaluate(assign.value(), scope), scope);
                case Stmt.AssignBlock block -> {
                    final Object text = render(block.body(), inner(scope));
                    final Object value =
                            block.filters() == null
                                    ? text
                                    : filterChain(block.filters(), text, scope);
                    assign(block.target(), value, scope);
                }
                case Stmt.MacroDefinition macro ->
                        scope.set(
                                macro.name(),
                                macro(macro.name(), macro.signature(), macro.body(), scope));
                case Stmt.CallBlock block -> print(Text.of(callBlock(block, scope)));
                case Stmt.FilterBlock block -> {
                    final String text = render(block.body(), inner(scope));
                    final Object filtered = filterChain(block.filters(), text, scope);
                    if (!PythonValues.isText(filtered)) {
                        throw new ValueException(
                                "the filters of a block made no text but '"
                                        + PythonValues.typeName(filtered)
                                        + "'");
                    }
                    print(Text.of(filtered));
                }
                case Stmt.With with -> {
                    return with(with, scope);
                }
                case Stmt.Generation generation -> print(render(generation.body(), inner(scope)));
                case Stmt.Break end -> {
                    return Flow.BREAK;
                }
                case Stmt.Continue next -> {
                    return Flow.CONTINUE;
                }
            }
        } catch (ValueException e) {
            throw new TemplateException(
                    e.raised() ? TemplateException.Kind.RAISED : TemplateException.Kind.RUNTIME,
                    statement.line(),
                    e.getMessage());
        } catch (TemplateException | CancellationException e) {
            throw e;
        } catch (RuntimeException e) {
            // an operation on values that it does not expect: the template's fault, not ours
            throw new TemplateException(
                    TemplateException.Kind.RUNTIME,
                    statement.line(),
                    "an operation failed on its values: " + e);
        }
        return Flow.NEXT;
    }

    private List<Stmt> chosen(Stmt.If choice, Scope scope) {
        for (Stmt.Branch branch : choice.branches()) {
            if (PythonValues.truth(evaluate(branch.condition(), scope))) {
                return branch.body();
            }
        }
        return choice.otherwise();
    }

    private void loop(Stmt.For loop, Object source, int depth, Scope scope) {
        Object walked = source;
        Iterator<?> items = PythonValues.iterate(source);
        if (loop.filter() != null) {
            final LazyItems kept = LazyItems.keeping(items, item -> passes(loop, item, scope));
            items = kept;
            walked = kept;
        }
        final LoopContext context =
                new LoopContext(
                        walked,
                        items,
                        depth,
                        loop.isRecursive()
                                ? inner -> captured(() -> loop(loop, inner, depth + 1, scope))
                                : null);
        boolean any = false; // has come to its end: else counts where the first one breaks off
        while (context.advance()) {
            final Scope inner = inner(scope);
            inner.set("loop", context);
            assign(loop.target(), context.current(), inner);
            final Flow flow = run(loop.body(), inner);
            if (flow == Flow.BREAK) {
                break;
            }
            any |= flow == Flow.NEXT;
        }
        if (!any) {
            run(loop.otherwise(), inner(scope));
        }
    }

    private boolean passes(Stmt.For loop, Object item, Scope scope) {
        final Scope inner = inner(scope);
        assign(loop.target(), item, inner);
        return PythonValues.truth(evaluate(loop.filter(), inner));
    }

    private Flow with(Stmt.With with, Scope scope) {
        final List<Object> values = new ArrayList<>();
        with.values().forEach(value -> values.add(evaluate(value, scope)));
        final Scope inner = inner(scope);
        for (int i = 0; i < values.size(); i++) {
            assign(with.targets().get(i), values.get(i), inner);
        }
        return run(with.body(), inner);
    }

    private Macro macro(String name, Stmt.Signature signature, List<Stmt> body, Scope scope) {
        budget.bytes(MACRO_BYTES);
        return new Macro(this, name, signature, body, scope);
    }

    private Object callBlock(Stmt.CallBlock block, Scope scope) {
        final Object callee = evaluate(block.call().callee(), scope);
        final Macro caller = macro("caller", block.signature(), block.body(), inner(scope));
        final Arguments plain = arguments(callee, block.call().arguments(), scope);
        final List<Object> positional = new ArrayList<>(plain.rest());
        final Map<String, Object> named = plain.restNamed();
        named.put("caller", caller);
        return call(callee, new Arguments("call", positional, named));
    }

    private static void assign(Stmt.Target target, Object value, Scope scope) {
        switch (target) {
            case Stmt.Target.Variable variable -> scope.set(variable.name(), value);
            case Stmt.Target.NamespaceAttribute attribute -> {
                if (!(scope.find(attribute.namespace()) instanceof Namespace namespace)) {
                    throw new ValueException("cannot assign attribute on non-namespace object");
                }
                namespace.set(attribute.attribute(), value);
            }
            case Stmt.Target.Several several -> {
                if (value instanceof Undefined undefined) {
                    throw undefined.fail();
                }
                final List<Object> values = PythonValues.list(value);
                if (values.size() != several.targets().size()) {
                    throw new ValueException(
                            "cannot unpack "
                                    + values.size()
                                    + " values into "
                                    + several.targets().size()
                                    + " names");
                }
                for (int i = 0; i < values.size(); i++) {
                    assign(several.targets().get(i), values.get(i), scope);
                }
            }
        }
    }

    // --- expressions ---

    Object evaluate(Expr expression, Scope scope) {
        budget.step();
        budget.enter();
        final Object value = valueOf(expression, scope);
        budget.leave();
        return value;
    }

    private Object valueOf(Expr expression, Scope scope) {
        return switch (expression) {
            case Expr.Constant constant -> constant.value();
            case Expr.Name name -> scope.find(name.name());
            case Expr.ListOf list -> evaluateAll(list.items(), scope);
            case Expr.TupleOf tuple -> new Tuple(evaluateAll(tuple.items(), scope));
            case Expr.DictOf dict -> {
                final Map<Object, Object> map = new LinkedHashMap<>();
                for (int i = 0; i < dict.keys().size(); i++) {
                    final Object key = evaluate(dict.keys().get(i), scope);
                    PythonValues.put(map, key, evaluate(dict.values().get(i), scope));
                }
                yield map;
            }
            case Expr.Attribute attribute ->
                    PythonValues.attribute(evaluate(attribute.base(), scope), attribute.name());
            case Expr.Item item ->
                    PythonValues.item(evaluate(item.base(), scope), evaluate(item.key(), scope));
            case Expr.Slice slice ->
                    PythonValues.slice(
                            evaluate(slice.base(), scope),
                            slice.start() == null ? null : evaluate(slice.start(), scope),
                            slice.stop() == null ? null : evaluate(slice.stop(), scope),
                            slice.step() == null ? null : evaluate(slice.step(), scope));
            case Expr.Call call -> {
                final Object callee = evaluate(call.callee(), scope);
                yield call(callee, arguments(callee, call.arguments(), scope));
            }
            case Expr.Filter filter -> filter(filter, evaluate(filter.base(), scope), scope);
            case Expr.Test test -> {
                final Object value = evaluate(test.base(), scope);
                yield TestFunctions.apply(
                        test.name(), value, arguments(test.name(), test.arguments(), scope));
            }
            case Expr.Not not -> !PythonValues.truth(evaluate(not.operand(), scope));
            case Expr.Sign sign -> sign(sign, scope);
            case Expr.Binary binary ->
                    PythonValues.binary(
                            binary.operator(),
                            evaluate(binary.left(), scope),
                            evaluate(binary.right(), scope));
            case Expr.And and -> {
                final Object left = evaluate(and.left(), scope);
                yield PythonValues.truth(left) ? evaluate(and.right(), scope) : left;
            }
            case Expr.Or or -> {
                final Object left = evaluate(or.left(), scope);
                yield PythonValues.truth(left) ? left : evaluate(or.right(), scope);
            }
            case Expr.Concat concat -> {
                final StringBuilder text = new StringBuilder();
                for (Expr part : concat.parts()) {
                    final String next = Text.of(evaluate(part, scope));
                    budget.text(next.length());
                    text.append(next);
                }
                budget.text(text.length());
                yield text.toString();
            }
            case Expr.Compare compare -> compare(compare, scope);
            case Expr.Conditional conditional -> {
                if (PythonValues.truth(evaluate(conditional.condition(), scope))) {
                    yield evaluate(conditional.then(), scope);
                }
                yield conditional.otherwise() == null
                        ? new Undefined(
                                "the inline if-expression evaluated to false and no else section"
                                        + " was defined.")
                        : evaluate(conditional.otherwise(), scope);
            }
        };
    }

    private List<Object> evaluateAll(List<Expr> expressions, Scope scope) {
        budget.items(expressions.size());
        final List<Object> values = new ArrayList<>(expressions.size());
        for (Expr expression : expressions) {
            values.add(evaluate(expression, scope));
        }
        return values;
    }

    private Object sign(Expr.Sign sign, Scope scope) {
        final Object value = evaluate(sign.operand(), scope);
        if (value instanceof Undefined undefined) {
            throw undefined.fail();
        }
        if (!Numbers.isNumber(value)) {
            throw new ValueException(
                    "bad operand type for unary sign: '" + PythonValues.typeName(value) + "'");
        }
        return sign.negative() ? Numbers.negate(value) : PythonValues.binary("+", value, 0L);
    }

    private boolean compare(Expr.Compare compare, Scope scope) {
        Object left = evaluate(compare.first(), scope);
        for (int i = 0; i < compare.operators().size(); i++) {
            final Object right = evaluate(compare.operands().get(i), scope);
            if (!holds(compare.operators().get(i), left, right)) {
                return false;
            }
            left = right;
        }
        return true;
    }

    private static boolean holds(String operator, Object left, Object right) {
        return switch (operator) {
            case "==" -> PythonValues.equal(left, right);
            case "!=" -> !PythonValues.equal(left, right);
            case "in" -> PythonValues.contains(right, left);
            case "not in" -> !PythonValues.contains(right, left);
            default -> ordered(operator, left, right);
        };
    }

    /** {@code left < right} and the like. */
    static boolean ordered(String operator, Object left, Object right) {
        if (ElementSet.isSet(left) && ElementSet.isSet(right)) {
            return ElementSet.ordered(operator, left, right);
        }
        final int order = PythonValues.compare(operator, left, right);
        if ((left instanceof Double a && a.isNaN()) || (right instanceof Double b && b.isNaN())) {
            return false;
        }
        return switch (operator) {
            case "<" -> order < 0;
            case "<=" -> order <= 0;
            case ">" -> order > 0;
            default -> order >= 0;
        };
    }

    /** Filters of a block, the first of which has no base. */
    private Object filterChain(Expr.Filter filter, Object text, Scope scope) {
        final Object base =
                filter.base() == null
                        ? text
                        : filterChain((Expr.Filter) filter.base(), text, scope);
        return filter(filter, base, scope);
    }

    private Object filter(Expr.Filter filter, Object value, Scope scope) {
        return Filters.apply(
                filter.name(), value, arguments(filter.name(), filter.arguments(), scope));
    }

    private static Object call(Object callee, Arguments arguments) {
        return switch (callee) {
            case Callable callable -> callable.call(arguments);
            case Undefined undefined -> throw undefined.fail();
            case null, default ->
                    throw new ValueException(
                            "'" + PythonValues.typeName(callee) + "' object is not callable");
        };
    }

    private Arguments arguments(Object callee, Expr.ArgumentList list, Scope scope) {
        final List<Object> positional = evaluateAll(list.positional(), scope);
        final Map<String, Object> named = new LinkedHashMap<>();
        for (int i = 0; i < list.names().size(); i++) {
            named.put(list.names().get(i), evaluate(list.values().get(i), scope));
        }
        if (list.spread() != null) {
            positional.addAll(PythonValues.list(evaluate(list.spread(), scope)));
        }
        if (list.spreadNamed() != null) {
            if (!(evaluate(list.spreadNamed(), scope) instanceof Map<?, ?> more)) {
                throw new ValueException("argument after ** must be a mapping");
            }
            more.forEach((key, value) -> named.put(Text.of(key), value));
        }
        return new Arguments(
                callee instanceof String name ? name : PythonValues.typeName(callee),
                positional,
                named);
    }
}
