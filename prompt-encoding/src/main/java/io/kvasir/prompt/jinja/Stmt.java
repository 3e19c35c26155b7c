package io.kvasir.prompt.jinja;

import java.util.List;

/** Statements; each knows the line it begins on, counted from 1. */
sealed interface Stmt {
    int line();

    /** Text as it is. */
    record Data(int line, String text) implements Stmt {}

    /** {@code {{ expression }}}. */
    record Print(int line, Expr expression) implements Stmt {}

    /** Branches in order, each with its condition; the last one may be for {@code else}. */
    record If(int line, List<Branch> branches, List<Stmt> otherwise) implements Stmt {}

    /** One condition and what it guards. */
    record Branch(int line, Expr condition, List<Stmt> body) {}

    /** {@code for target in items if filter recursive}; the filter may be null. */
    record For(
            int line,
            Target target,
            Expr items,
            Expr filter,
            boolean isRecursive,
            List<Stmt> body,
            List<Stmt> otherwise)
            implements Stmt {}

    /** {@code set target = value}. */
    record Assign(int line, Target target, Expr value) implements Stmt {}

    /** {@code set target | filters} with a body; the filters may be null. */
    record AssignBlock(int line, Target target, Expr.Filter filters, List<Stmt> body)
            implements Stmt {}

    /** {@code macro name(signature)}. */
    record MacroDefinition(int line, String name, Signature signature, List<Stmt> body)
            implements Stmt {}

    /** {@code call(signature) callee(arguments)}. */
    record CallBlock(int line, Signature signature, Expr.Call call, List<Stmt> body)
            implements Stmt {}

    /** {@code filter filters} with a body. */
    record FilterBlock(int line, Expr.Filter filters, List<Stmt> body) implements Stmt {}

    /** {@code with names = values}. */
    record With(int line, List<Target> targets, List<Expr> values, List<Stmt> body)
            implements Stmt {}

    /** {@code generation}: what the model would have written; rendered like any other text. */
    record Generation(int line, List<Stmt> body) implements Stmt {}

    /** {@code break}. */
    record Break(int line) implements Stmt {}

    /** {@code continue}. */
    record Continue(int line) implements Stmt {}

    /** What can be assigned to. */
    sealed interface Target {
        /** A variable. */
        record Variable(String name) implements Target {}

        /** An attribute of a namespace. */
        record NamespaceAttribute(String namespace, String attribute) implements Target {}

        /** Several at once. */
        record Several(List<Target> targets) implements Target {}
    }

    /**
     * Parameters of a macro or caller.
     *
     * @param names in order
     * @param defaults of the last parameters, same order
     * @param usesCaller whether the body mentions {@code caller}
     * @param usesKeywords whether the body mentions {@code kwargs}
     * @param usesVarargs whether the body mentions {@code varargs}
     */
    record Signature(
            List<String> names,
            List<Expr> defaults,
            boolean usesCaller,
            boolean usesKeywords,
            boolean usesVarargs) {}
}
