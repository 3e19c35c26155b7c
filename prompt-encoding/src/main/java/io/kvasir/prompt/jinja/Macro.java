package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A macro, or the body of a call block: text with parameters that sees where it was written. */
final class Macro implements Callable {
    private final Evaluator evaluator;
    private final String name;
    private final Stmt.Signature signature;
    private final List<Stmt> body;
    private final Scope definedIn;

    Macro(
            Evaluator evaluator,
            String name,
            Stmt.Signature signature,
            List<Stmt> body,
            Scope definedIn) {
        this.evaluator = evaluator;
        this.name = name;
        this.signature = signature;
        this.body = body;
        this.definedIn = definedIn;
    }

    /** An attribute, or null where there is none of that name. */
    Object attribute(String attribute) {
        return switch (attribute) {
            case "name" -> name;
            case "arguments" -> new Tuple(signature.names());
            case "catch_kwargs" -> signature.usesKeywords();
            case "catch_varargs" -> signature.usesVarargs();
            case "caller" -> signature.usesCaller();
            default -> null;
        };
    }

    @Override
    public Object call(Arguments arguments) {
        final Scope scope = evaluator.inner(definedIn);
        final List<String> names = signature.names();
        final Map<String, Object> given = new HashMap<>();
        int taken = 0;
        while (taken < names.size() && arguments.positionalLeft() > 0) {
            given.put(names.get(taken), arguments.take(names.get(taken)));
            taken++;
        }
        final List<Object> more = new ArrayList<>(arguments.rest());
        final Map<String, Object> named = arguments.restNamed();
        for (; taken < names.size(); taken++) {
            if (named.containsKey(names.get(taken))) {
                given.put(names.get(taken), named.remove(names.get(taken)));
            }
        }
        special(scope, more, named);
        final int firstDefault = names.size() - signature.defaults().size();
        for (int i = 0; i < names.size(); i++) {
            final String parameter = names.get(i);
            final Object value;
            if (given.containsKey(parameter)) {
                value = given.get(parameter);
            } else if (i >= firstDefault) {
                value = evaluator.evaluate(signature.defaults().get(i - firstDefault), scope);
            } else {
                value = new Undefined("parameter '" + parameter + "' was not provided");
            }
            scope.set(parameter, value);
        }
        return evaluator.render(body, scope);
    }

    private void special(Scope scope, List<Object> more, Map<String, Object> named) {
        if (signature.usesCaller() && !signature.names().contains("caller")) {
            final Object caller = named.remove("caller");
            scope.set("caller", caller == null ? new Undefined("No caller defined") : caller);
        }
        if (signature.usesKeywords()) {
            scope.set("kwargs", new java.util.LinkedHashMap<Object, Object>(named));
        } else if (!named.isEmpty()) {
            throw new ValueException(
                    "macro '"
                            + name
                            + "' takes no keyword argument '"
                            + named.keySet().iterator().next()
                            + "'");
        }
        if (signature.usesVarargs()) {
            scope.set("varargs", new Tuple(more));
        } else if (!more.isEmpty()) {
            throw new ValueException(
                    "macro '"
                            + name
                            + "' takes not more than "
                            + signature.names().size()
                            + " argument(s)");
        }
    }
}
