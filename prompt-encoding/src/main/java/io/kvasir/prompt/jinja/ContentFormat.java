package io.kvasir.prompt.jinja;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Finds out whether a template walks through the parts of a message's content, by the same rules as
 * vLLM does: the two have to agree, because with parts given as a list the prompt differs.
 *
 * <p>Names that stand for the messages are followed through assignments, names that stand for one
 * message through loops over them; then a loop over a message's {@code content}, over a macro
 * parameter that was given one, or (outside of macros) over a variable called {@code content}
 * decides. A loop or assignment with several targets on that way counts as "no".
 */
final class ContentFormat {
    /** A template with one of these words is one of parts to SGLang. */
    private static final List<String> SGLANG_WORDS = List.of("image", "audio", "video", "vision");

    /** The names of a message's variable that SGLang knows. */
    private static final List<String> SGLANG_NAMES = List.of("message", "msg", "m");

    private final Syntax syntax = new Syntax();

    private ContentFormat() {}

    /** A shape that the rules give up on. */
    private static final class Undecidable extends Exception {
        private static final long serialVersionUID = 1L;
    }

    static boolean iteratesOverContent(List<Stmt> body) {
        final ContentFormat format = new ContentFormat();
        format.syntax.add(body);
        try {
            return format.decide();
        } catch (Undecidable e) {
            return false;
        }
    }

    /** By the rules of SGLang 0.5.23, which does not follow assignments. */
    static boolean isPartsAtSglang(String source, List<Stmt> body) {
        if (SGLANG_WORDS.stream().anyMatch(source::contains)) {
            return true;
        }
        final ContentFormat format = new ContentFormat();
        format.syntax.add(body);
        for (Stmt.For loop : format.syntax.loops) {
            for (String name : SGLANG_NAMES) {
                if (leadsTo(loop.items(), name, "content")) {
                    return true;
                }
            }
        }
        return false;
    }

    private boolean decide() throws Undecidable {
        final Set<String> messages = messageNames();
        final IdentityHashMap<Stmt.For, Set<String>> macroParameters = new IdentityHashMap<>();
        for (Stmt.MacroDefinition macro : syntax.macros) {
            final Set<String> parameters = contentParameters(macro, messages);
            final Syntax inside = new Syntax();
            inside.add(macro.body());
            inside.loops.forEach(loop -> macroParameters.put(loop, parameters));
        }
        for (Stmt.For loop : syntax.loops) {
            if (decides(loop, messages, macroParameters)) {
                variable(loop.target());
                return true;
            }
        }
        return false;
    }

    private static boolean decides(
            Stmt.For loop,
            Set<String> messages,
            IdentityHashMap<Stmt.For, Set<String>> macroParameters) {
        for (String message : messages) {
            if (leadsTo(loop.items(), message, "content")) {
                return true;
            }
        }
        if (!(loop.items() instanceof Expr.Name name)) {
            return false;
        }
        final Set<String> parameters = macroParameters.get(loop);
        return parameters == null
                ? name.name().equals("content")
                : parameters.contains(name.name());
    }

    /** Names that stand for one message. */
    private Set<String> messageNames() throws Undecidable {
        final Set<String> lists = new HashSet<>(Set.of("messages"));
        final Deque<String> open = new ArrayDeque<>(lists);
        while (!open.isEmpty()) {
            final String list = open.pop();
            for (Stmt.Assign assign : syntax.assignments) {
                if (leadsTo(assign.value(), list, null)) {
                    final String name = variable(assign.target());
                    if (lists.add(name)) {
                        open.push(name);
                    }
                }
            }
        }
        final Set<String> names = new HashSet<>();
        for (Stmt.For loop : syntax.loops) {
            for (String list : lists) {
                if (leadsTo(loop.items(), list, null)) {
                    names.add(variable(loop.target()));
                    break;
                }
            }
        }
        return names;
    }

    private Set<String> contentParameters(Stmt.MacroDefinition macro, Set<String> messages) {
        final List<String> names = macro.signature().names();
        final Set<String> found = new HashSet<>();
        for (Expr.Call call : syntax.calls) {
            Budget.current().step();
            if (!(call.callee() instanceof Expr.Name callee)
                    || !callee.name().equals(macro.name())) {
                continue;
            }
            final Map<String, Expr> given = new HashMap<>();
            final List<Expr> positional = call.arguments().positional();
            for (int i = 0; i < Math.min(positional.size(), names.size()); i++) {
                given.put(names.get(i), positional.get(i));
            }
            for (int i = 0; i < call.arguments().names().size(); i++) {
                if (names.contains(call.arguments().names().get(i))) {
                    given.put(call.arguments().names().get(i), call.arguments().values().get(i));
                }
            }
            given.forEach(
                    (parameter, value) -> {
                        if (messages.stream().anyMatch(m -> leadsTo(value, m, "content"))) {
                            found.add(parameter);
                        }
                    });
        }
        return found;
    }

    private static String variable(Stmt.Target target) throws Undecidable {
        if (target instanceof Stmt.Target.Variable variable) {
            return variable.name();
        }
        throw new Undecidable();
    }

    /** Whether an expression is the variable (or its item {@code key}), filtered or sliced. */
    private static boolean leadsTo(Expr expression, String variable, String key) {
        Budget.current().step();
        Budget.current().read(variable.length());
        return switch (expression) {
            case Expr.Filter filter ->
                    filter.base() != null && leadsTo(filter.base(), variable, key);
            case Expr.Test test -> leadsTo(test.base(), variable, key);
            case Expr.Slice slice -> leadsTo(slice.base(), variable, key);
            case Expr.Name name -> key == null && name.name().equals(variable);
            case Expr.Item item ->
                    key != null
                            && isVariable(item.base(), variable)
                            && item.key() instanceof Expr.Constant(Object value)
                            && key.equals(value);
            case Expr.Attribute attribute ->
                    key != null
                            && isVariable(attribute.base(), variable)
                            && attribute.name().equals(key);
            default -> false;
        };
    }

    private static boolean isVariable(Expr expression, String variable) {
        return expression instanceof Expr.Name name && name.name().equals(variable);
    }

    /** All loops, assignments, macros and calls of a template. */
    private static final class Syntax {
        private final List<Stmt.For> loops = new ArrayList<>();
        private final List<Stmt.Assign> assignments = new ArrayList<>();
        private final List<Stmt.MacroDefinition> macros = new ArrayList<>();
        private final List<Expr.Call> calls = new ArrayList<>();

        private final Budget budget = Budget.current();

        void add(List<Stmt> body) {
            body.forEach(this::add);
        }

        /** Chains such as {@code a + b + c} are nested without having been parsed so. */
        private void add(Stmt statement) {
            budget.step();
            budget.enter();
            addParts(statement);
            budget.leave();
        }

        private void addParts(Stmt statement) {
            switch (statement) {
                case Stmt.Print print -> add(print.expression());
                case Stmt.If choice -> {
                    for (Stmt.Branch branch : choice.branches()) {
                        add(branch.condition());
                        add(branch.body());
                    }
                    add(choice.otherwise());
                }
                case Stmt.For loop -> {
                    loops.add(loop);
                    add(loop.items());
                    add(loop.filter());
                    add(loop.body());
                    add(loop.otherwise());
                }
                case Stmt.Assign assign -> {
                    assignments.add(assign);
                    add(assign.value());
                }
                case Stmt.AssignBlock block -> {
                    add(block.filters());
                    add(block.body());
                }
                case Stmt.MacroDefinition macro -> {
                    macros.add(macro);
                    macro.signature().defaults().forEach(this::add);
                    add(macro.body());
                }
                case Stmt.CallBlock block -> {
                    add(block.call());
                    add(block.body());
                }
                case Stmt.FilterBlock block -> {
                    add(block.filters());
                    add(block.body());
                }
                case Stmt.With with -> {
                    with.values().forEach(this::add);
                    add(with.body());
                }
                case Stmt.Generation generation -> add(generation.body());
                case Stmt.Data data -> {
                    // nothing inside
                }
                case Stmt.Break end -> {
                    // nothing inside
                }
                case Stmt.Continue next -> {
                    // nothing inside
                }
            }
        }

        private void add(Expr expression) {
            budget.step();
            budget.enter();
            addParts(expression);
            budget.leave();
        }

        private void addParts(Expr expression) {
            switch (expression) {
                case null -> {
                    // a part that was left out
                }
                case Expr.Constant constant -> {
                    // nothing inside
                }
                case Expr.Name name -> {
                    // nothing inside
                }
                case Expr.ListOf list -> list.items().forEach(this::add);
                case Expr.TupleOf tuple -> tuple.items().forEach(this::add);
                case Expr.DictOf dict -> {
                    dict.keys().forEach(this::add);
                    dict.values().forEach(this::add);
                }
                case Expr.Attribute attribute -> add(attribute.base());
                case Expr.Item item -> {
                    add(item.base());
                    add(item.key());
                }
                case Expr.Slice slice -> {
                    add(slice.base());
                    add(slice.start());
                    add(slice.stop());
                    add(slice.step());
                }
                case Expr.Call call -> {
                    calls.add(call);
                    add(call.callee());
                    add(call.arguments());
                }
                case Expr.Filter filter -> {
                    add(filter.base());
                    add(filter.arguments());
                }
                case Expr.Test test -> {
                    add(test.base());
                    add(test.arguments());
                }
                case Expr.Not not -> add(not.operand());
                case Expr.Sign sign -> add(sign.operand());
                case Expr.Binary binary -> {
                    add(binary.left());
                    add(binary.right());
                }
                case Expr.And and -> {
                    add(and.left());
                    add(and.right());
                }
                case Expr.Or or -> {
                    add(or.left());
                    add(or.right());
                }
                case Expr.Concat concat -> concat.parts().forEach(this::add);
                case Expr.Compare compare -> {
                    add(compare.first());
                    compare.operands().forEach(this::add);
                }
                case Expr.Conditional conditional -> {
                    add(conditional.condition());
                    add(conditional.then());
                    add(conditional.otherwise());
                }
            }
        }

        private void add(Expr.ArgumentList arguments) {
            arguments.positional().forEach(this::add);
            arguments.values().forEach(this::add);
            add(arguments.spread());
            add(arguments.spreadNamed());
        }
    }
}
