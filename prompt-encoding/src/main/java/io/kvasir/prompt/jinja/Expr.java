package io.kvasir.prompt.jinja;

import java.util.List;

/** Expressions. */
sealed interface Expr {
    /** A literal. */
    record Constant(Object value) implements Expr {}

    /** A variable. */
    record Name(String name) implements Expr {}

    /** {@code [a, b]}. */
    record ListOf(List<Expr> items) implements Expr {}

    /** {@code a, b}. */
    record TupleOf(List<Expr> items) implements Expr {}

    /** {@code {key: value}}. */
    record DictOf(List<Expr> keys, List<Expr> values) implements Expr {}

    /** {@code base.name}. */
    record Attribute(Expr base, String name) implements Expr {}

    /** {@code base[key]}. */
    record Item(Expr base, Expr key) implements Expr {}

    /** {@code base[start:stop:step]}; a part that is left out is null. */
    record Slice(Expr base, Expr start, Expr stop, Expr step) implements Expr {}

    /** {@code callee(arguments)}. */
    record Call(Expr callee, ArgumentList arguments) implements Expr {}

    /** {@code base|name(arguments)}; the base is null at the head of a filter block. */
    record Filter(Expr base, String name, ArgumentList arguments) implements Expr {}

    /** {@code base is name(arguments)}. */
    record Test(Expr base, String name, ArgumentList arguments) implements Expr {}

    /** {@code not operand}. */
    record Not(Expr operand) implements Expr {}

    /** {@code -operand} or {@code +operand}. */
    record Sign(Expr operand, boolean negative) implements Expr {}

    /** Arithmetic on two operands. */
    record Binary(String operator, Expr left, Expr right) implements Expr {}

    /** {@code left and right}. */
    record And(Expr left, Expr right) implements Expr {}

    /** {@code left or right}. */
    record Or(Expr left, Expr right) implements Expr {}

    /** {@code a ~ b ~ c}. */
    record Concat(List<Expr> parts) implements Expr {}

    /** {@code first op operand op operand}, chained as in Python. */
    record Compare(Expr first, List<String> operators, List<Expr> operands) implements Expr {}

    /** {@code then if condition else otherwise}; the last part is null when left out. */
    record Conditional(Expr condition, Expr then, Expr otherwise) implements Expr {}

    /**
     * Arguments of a call.
     *
     * @param positional in order
     * @param names of the keyword arguments
     * @param values of the keyword arguments, same order
     * @param spread expression after {@code *}, or null
     * @param spreadNamed expression after {@code **}, or null
     */
    record ArgumentList(
            List<Expr> positional,
            List<String> names,
            List<Expr> values,
            Expr spread,
            Expr spreadNamed) {
        static final ArgumentList EMPTY =
                new ArgumentList(List.of(), List.of(), List.of(), null, null);
    }
}
