package io.kvasir.prompt.jinja;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * Builds statements from the tokens of one template. What is not implemented is an error here, at
 * load time, and never left out silently.
 */
final class Parser {
    private static final Set<String> COMPARISONS = Set.of("==", "!=", "<", "<=", ">", ">=");

    /** Names that Jinja defines and this interpreter does not. */
    private static final Set<String> MISSING_GLOBALS = Set.of("lipsum", "self", "super");

    private final Budget budget = Budget.current();
    private final List<Token> tokens;
    private int at;
    private int loopDepth;

    /** Names mentioned since the innermost macro or caller began. */
    private Set<String> mentioned = new java.util.HashSet<>();

    private Parser(List<Token> tokens) {
        this.tokens = tokens;
    }

    /**
     * Parses a template.
     *
     * @throws TemplateException of kind SYNTAX
     */
    static List<Stmt> parse(String source) {
        final Parser parser = new Parser(Lexer.tokenize(source));
        final List<Stmt> body = parser.body();
        if (parser.current().type() != Token.Type.END) {
            throw parser.error("unexpected tag " + parser.peek(1).describe());
        }
        return body;
    }

    // --- statements ---

    /** Statements up to a tag of one of the names, which stays unread, or to the end. */
    private List<Stmt> body(String... ends) {
        budget.enter();
        final List<Stmt> statements = statements(ends);
        budget.leave();
        return statements;
    }

    private List<Stmt> statements(String... ends) {
        final List<Stmt> statements = new ArrayList<>();
        while (true) {
            final Token token = current();
            switch (token.type()) {
                case DATA -> {
                    statements.add(new Stmt.Data(token.line(), token.text()));
                    at++;
                }
                case VARIABLE_BEGIN -> {
                    at++;
                    statements.add(new Stmt.Print(token.line(), tuple(true)));
                    expect(Token.Type.VARIABLE_END, "'}}'");
                }
                case BLOCK_BEGIN -> {
                    final Token name = peek(1);
                    for (String end : ends) {
                        if (name.isName(end)) {
                            return statements;
                        }
                    }
                    at++;
                    statements.add(statement());
                    expect(Token.Type.BLOCK_END, "'%}'");
                }
                default -> {
                    if (ends.length > 0) {
                        throw error("expected {% " + String.join(" %} or {% ", ends) + " %}");
                    }
                    return statements;
                }
            }
        }
    }

    /** Body of a tag whose head was read, up to its end tag, which is read except for its end. */
    private List<Stmt> bodyUntil(String end) {
        skipOperator(":");
        expect(Token.Type.BLOCK_END, "'%}'");
        final List<Stmt> body = body(end);
        at += 2;
        return body;
    }

    private Stmt statement() {
        final Token tag = current();
        if (tag.type() != Token.Type.NAME) {
            throw error("expected the name of a tag, got " + tag.describe());
        }
        at++;
        return switch (tag.text()) {
            case "if" -> ifStatement(tag.line());
            case "for" -> forStatement(tag.line());
            case "set" -> setStatement(tag.line());
            case "macro" -> macro(tag.line());
            case "call" -> callBlock(tag.line());
            case "filter" ->
                    new Stmt.FilterBlock(tag.line(), filterChain(), scopedBody("endfilter"));
            case "with" -> with(tag.line());
            case "print" -> new Stmt.Print(tag.line(), expression());
            case "generation" -> new Stmt.Generation(tag.line(), scopedBody("endgeneration"));
            case "break" -> new Stmt.Break(inLoop(tag));
            case "continue" -> new Stmt.Continue(inLoop(tag));
            default -> throw unknownTag(tag);
        };
    }

    private TemplateException unknownTag(Token tag) {
        return new TemplateException(
                TemplateException.Kind.SYNTAX,
                tag.line(),
                "tag '" + tag.text() + "' is unknown, out of place or not implemented");
    }

    private int inLoop(Token tag) {
        if (loopDepth == 0) {
            throw error("'" + tag.text() + "' outside of a loop");
        }
        return tag.line();
    }

    /** A body in which the loops around it cannot be left. */
    private List<Stmt> scopedBody(String end) {
        final int outer = loopDepth;
        loopDepth = 0;
        final List<Stmt> body = bodyUntil(end);
        loopDepth = outer;
        return body;
    }

    private Stmt ifStatement(int line) {
        final List<Stmt.Branch> branches = new ArrayList<>();
        List<Stmt> otherwise = List.of();
        int branchLine = line;
        while (true) {
            final Expr condition = tuple(false);
            skipOperator(":");
            expect(Token.Type.BLOCK_END, "'%}'");
            branches.add(new Stmt.Branch(branchLine, condition, body("elif", "else", "endif")));
            at++;
            final Token next = current();
            at++;
            if (next.isName("elif")) {
                branchLine = next.line();
                continue;
            }
            if (next.isName("else")) {
                otherwise = bodyUntil("endif");
            }
            return new Stmt.If(line, branches, otherwise);
        }
    }

    private Stmt forStatement(int line) {
        final Stmt.Target target = target(false);
        expectName("in");
        final Expr items = tuple(false);
        Expr filter = null;
        if (skipName("if")) {
            filter = expression();
        }
        final boolean isRecursive = skipName("recursive");
        skipOperator(":");
        expect(Token.Type.BLOCK_END, "'%}'");
        loopDepth++;
        final List<Stmt> body = body("endfor", "else");
        loopDepth--;
        at++;
        List<Stmt> otherwise = List.of();
        if (skipName("else")) {
            otherwise = bodyUntil("endfor");
        } else {
            expectName("endfor");
        }
        return new Stmt.For(line, target, items, filter, isRecursive, body, otherwise);
    }

    private Stmt setStatement(int line) {
        final Stmt.Target target = target(true);
        if (skipOperator("=")) {
            return new Stmt.Assign(line, target, tuple(true));
        }
        final Expr.Filter filters = current().isOperator("|") ? (Expr.Filter) filters(null) : null;
        return new Stmt.AssignBlock(line, target, filters, scopedBody("endset"));
    }

    private Stmt macro(int line) {
        final String name = plainName();
        final Set<String> outer = mentioned;
        mentioned = new java.util.HashSet<>();
        final List<String> names = new ArrayList<>();
        final List<Expr> defaults = new ArrayList<>();
        parameters(names, defaults);
        final List<Stmt> body = scopedBody("endmacro");
        final Stmt.Signature signature = signature(names, defaults);
        budget.steps(mentioned.size());
        outer.addAll(mentioned);
        mentioned = outer;
        return new Stmt.MacroDefinition(line, name, signature, body);
    }

    private Stmt callBlock(int line) {
        final List<String> names = new ArrayList<>();
        final List<Expr> defaults = new ArrayList<>();
        if (current().isOperator("(")) {
            parameters(names, defaults);
        }
        if (!(expression() instanceof Expr.Call call)) {
            throw error("expected a call");
        }
        final Set<String> outer = mentioned;
        mentioned = new java.util.HashSet<>();
        final List<Stmt> body = scopedBody("endcall");
        final Stmt.Signature signature = signature(names, defaults);
        budget.steps(mentioned.size());
        outer.addAll(mentioned);
        mentioned = outer;
        return new Stmt.CallBlock(line, signature, call, body);
    }

    private Stmt.Signature signature(List<String> names, List<Expr> defaults) {
        return new Stmt.Signature(
                names,
                defaults,
                mentioned.contains("caller"),
                mentioned.contains("kwargs"),
                mentioned.contains("varargs"));
    }

    private void parameters(List<String> names, List<Expr> defaults) {
        expectOperator("(");
        while (!current().isOperator(")")) {
            if (!names.isEmpty()) {
                expectOperator(",");
            }
            names.add(plainName());
            if (skipOperator("=")) {
                defaults.add(expression());
            } else if (!defaults.isEmpty()) {
                throw error("a parameter without default follows one with a default");
            }
        }
        at++;
    }

    private Stmt with(int line) {
        final List<Stmt.Target> targets = new ArrayList<>();
        final List<Expr> values = new ArrayList<>();
        while (current().type() != Token.Type.BLOCK_END) {
            if (!targets.isEmpty()) {
                expectOperator(",");
            }
            targets.add(target(false));
            expectOperator("=");
            values.add(expression());
        }
        return new Stmt.With(line, targets, values, bodyUntil("endwith"));
    }

    private Stmt.Target target(boolean namespaces) {
        budget.enter();
        final List<Stmt.Target> targets = new ArrayList<>();
        boolean several = false;
        while (true) {
            targets.add(singleTarget(namespaces));
            if (!skipOperator(",")) {
                break;
            }
            several = true;
            if (current().isName("in") || current().isOperator("=")) {
                break;
            }
        }
        budget.leave();
        return several ? new Stmt.Target.Several(targets) : targets.getFirst();
    }

    private Stmt.Target singleTarget(boolean namespaces) {
        if (skipOperator("(")) {
            final Stmt.Target inner = target(namespaces);
            expectOperator(")");
            return inner;
        }
        final String name = plainName();
        if (namespaces && skipOperator(".")) {
            return new Stmt.Target.NamespaceAttribute(name, attributeName());
        }
        return new Stmt.Target.Variable(name);
    }

    // --- expressions, loosest first ---

    /** An expression, or several of them with commas between. */
    private Expr tuple(boolean conditional) {
        final List<Expr> items = new ArrayList<>();
        boolean several = false;
        while (!tupleEnds()) {
            items.add(conditional ? expression() : or());
            if (!skipOperator(",")) {
                break;
            }
            several = true;
        }
        if (several) {
            return new Expr.TupleOf(items);
        }
        if (items.isEmpty()) {
            throw error("expected an expression, got " + current().describe());
        }
        return items.getFirst();
    }

    private boolean tupleEnds() {
        final Token token = current();
        return token.type() == Token.Type.VARIABLE_END
                || token.type() == Token.Type.BLOCK_END
                || token.isOperator(")")
                || token.isName("recursive");
    }

    private Expr expression() {
        budget.enter();
        Expr result = or();
        while (skipName("if")) {
            final Expr condition = or();
            final Expr otherwise = skipName("else") ? expression() : null;
            result = new Expr.Conditional(condition, result, otherwise);
        }
        budget.leave();
        return result;
    }

    private Expr or() {
        Expr left = and();
        while (skipName("or")) {
            left = new Expr.Or(left, and());
        }
        return left;
    }

    private Expr and() {
        Expr left = not();
        while (skipName("and")) {
            left = new Expr.And(left, not());
        }
        return left;
    }

    private Expr not() {
        if (!skipName("not")) {
            return comparison();
        }
        budget.enter();
        final Expr operand = not();
        budget.leave();
        return new Expr.Not(operand);
    }

    private Expr comparison() {
        final Expr first = sum();
        final List<String> operators = new ArrayList<>();
        final List<Expr> operands = new ArrayList<>();
        while (true) {
            final Token token = current();
            if (token.type() == Token.Type.OPERATOR && COMPARISONS.contains(token.text())) {
                at++;
                operators.add(token.text());
            } else if (token.isName("in")) {
                at++;
                operators.add("in");
            } else if (token.isName("not") && peek(1).isName("in")) {
                at += 2;
                operators.add("not in");
            } else {
                return operators.isEmpty() ? first : new Expr.Compare(first, operators, operands);
            }
            operands.add(sum());
        }
    }

    private Expr sum() {
        Expr left = concatenation();
        while (current().isOperator("+") || current().isOperator("-")) {
            final String operator = current().text();
            at++;
            left = new Expr.Binary(operator, left, concatenation());
        }
        return left;
    }

    private Expr concatenation() {
        final Expr first = product();
        if (!current().isOperator("~")) {
            return first;
        }
        final List<Expr> parts = new ArrayList<>();
        parts.add(first);
        while (skipOperator("~")) {
            parts.add(product());
        }
        return new Expr.Concat(parts);
    }

    private Expr product() {
        Expr left = power();
        while (current().isOperator("*")
                || current().isOperator("/")
                || current().isOperator("//")
                || current().isOperator("%")) {
            final String operator = current().text();
            at++;
            left = new Expr.Binary(operator, left, power());
        }
        return left;
    }

    private Expr power() {
        Expr left = unary(true);
        while (skipOperator("**")) {
            left = new Expr.Binary("**", left, unary(true));
        }
        return left;
    }

    private Expr unary(boolean filtered) {
        final Expr operand;
        final boolean negative = current().isOperator("-");
        if (negative || current().isOperator("+")) {
            at++;
            budget.enter();
            operand = new Expr.Sign(unary(false), negative);
            budget.leave();
        } else {
            operand = primary();
        }
        final Expr result = postfix(operand);
        return filtered ? filtersAndTests(result) : result;
    }

    private Expr primary() {
        final Token token = current();
        at++;
        switch (token.type()) {
            case NAME -> {
                return name(token);
            }
            case STRING -> {
                final StringBuilder text = new StringBuilder(token.text());
                while (current().type() == Token.Type.STRING) {
                    text.append(current().text());
                    at++;
                }
                return new Expr.Constant(text.toString());
            }
            case NUMBER -> {
                return new Expr.Constant(token.value());
            }
            case OPERATOR -> {
                switch (token.text()) {
                    case "(" -> {
                        final Expr inner =
                                current().isOperator(")")
                                        ? new Expr.TupleOf(List.of())
                                        : tuple(true);
                        expectOperator(")");
                        return inner;
                    }
                    case "[" -> {
                        return list();
                    }
                    case "{" -> {
                        return dict();
                    }
                    default -> at--;
                }
            }
            default -> at--;
        }
        throw error("unexpected " + token.describe());
    }

    private Expr name(Token token) {
        return switch (token.text()) {
            case "true", "True" -> new Expr.Constant(true);
            case "false", "False" -> new Expr.Constant(false);
            case "none", "None" -> new Expr.Constant(null);
            default -> {
                if (MISSING_GLOBALS.contains(token.text())) {
                    at--;
                    throw error("'" + token.text() + "' is not implemented");
                }
                mentioned.add(token.text());
                yield new Expr.Name(token.text());
            }
        };
    }

    private Expr list() {
        final List<Expr> items = new ArrayList<>();
        while (!current().isOperator("]")) {
            if (!items.isEmpty()) {
                expectOperator(",");
                if (current().isOperator("]")) {
                    break;
                }
            }
            items.add(expression());
        }
        expectOperator("]");
        return new Expr.ListOf(items);
    }

    private Expr dict() {
        final List<Expr> keys = new ArrayList<>();
        final List<Expr> values = new ArrayList<>();
        while (!current().isOperator("}")) {
            if (!keys.isEmpty()) {
                expectOperator(",");
                if (current().isOperator("}")) {
                    break;
                }
            }
            keys.add(expression());
            expectOperator(":");
            values.add(expression());
        }
        expectOperator("}");
        return new Expr.DictOf(keys, values);
    }

    private Expr postfix(Expr base) {
        Expr result = base;
        while (true) {
            if (skipOperator(".")) {
                final Token token = current();
                if (token.type() == Token.Type.NUMBER && token.value() instanceof Long) {
                    at++;
                    result = new Expr.Item(result, new Expr.Constant(token.value()));
                } else {
                    result = new Expr.Attribute(result, attributeName());
                }
            } else if (skipOperator("[")) {
                result = subscript(result);
            } else if (current().isOperator("(")) {
                result = new Expr.Call(result, arguments());
            } else {
                return result;
            }
        }
    }

    private Expr subscript(Expr base) {
        Expr start = null;
        if (!current().isOperator(":")) {
            start = expression();
            if (current().isOperator(",")) {
                final List<Expr> keys = new ArrayList<>(List.of(start));
                while (skipOperator(",") && !current().isOperator("]")) {
                    keys.add(expression());
                }
                expectOperator("]");
                return new Expr.Item(base, new Expr.TupleOf(keys));
            }
            if (skipOperator("]")) {
                return new Expr.Item(base, start);
            }
        }
        expectOperator(":");
        Expr stop = null;
        Expr step = null;
        if (!current().isOperator(":") && !current().isOperator("]")) {
            stop = expression();
        }
        if (skipOperator(":") && !current().isOperator("]")) {
            step = expression();
        }
        expectOperator("]");
        return new Expr.Slice(base, start, stop, step);
    }

    private Expr filtersAndTests(Expr base) {
        Expr result = base;
        while (true) {
            if (current().isOperator("|")) {
                result = filters(result);
            } else if (current().isName("is")) {
                result = test(result);
            } else if (current().isOperator("(")) {
                result = new Expr.Call(result, arguments());
            } else {
                return result;
            }
        }
    }

    private Expr filters(Expr base) {
        Expr result = base;
        while (skipOperator("|")) {
            result = filter(result);
        }
        return result;
    }

    /** Filters of a filter block: the first one stands without its bar. */
    private Expr.Filter filterChain() {
        return (Expr.Filter) filters(filter(null));
    }

    private Expr.Filter filter(Expr base) {
        final String name = dottedName();
        if (!Filters.exists(name)) {
            at--;
            throw error("filter '" + name + "' is unknown or not implemented");
        }
        return new Expr.Filter(
                base, name, current().isOperator("(") ? arguments() : Expr.ArgumentList.EMPTY);
    }

    private Expr test(Expr base) {
        at++;
        final boolean negated = skipName("not");
        final String name = dottedName();
        if (!TestFunctions.exists(name)) {
            at--;
            throw error("test '" + name + "' is unknown or not implemented");
        }
        Expr.ArgumentList arguments = Expr.ArgumentList.EMPTY;
        if (current().isOperator("(")) {
            arguments = arguments();
        } else if (startsOperand()) {
            final Expr operand = postfix(primary());
            arguments = new Expr.ArgumentList(List.of(operand), List.of(), List.of(), null, null);
        }
        final Expr result = new Expr.Test(base, name, arguments);
        return negated ? new Expr.Not(result) : result;
    }

    /** Whether the one argument of a test follows without parentheses. */
    private boolean startsOperand() {
        final Token token = current();
        return switch (token.type()) {
            case STRING, NUMBER -> true;
            case NAME -> {
                if (token.isName("is")) {
                    throw error("tests cannot be chained with 'is'");
                }
                yield !Set.of("else", "or", "and").contains(token.text()); // but "if" is taken
            }
            case OPERATOR -> token.isOperator("[") || token.isOperator("{");
            default -> false;
        };
    }

    private Expr.ArgumentList arguments() {
        expectOperator("(");
        final List<Expr> positional = new ArrayList<>();
        final List<String> names = new ArrayList<>();
        final List<Expr> values = new ArrayList<>();
        Expr spread = null;
        Expr spreadNamed = null;
        boolean first = true;
        while (!current().isOperator(")")) {
            if (!first) {
                expectOperator(",");
                if (current().isOperator(")")) {
                    break;
                }
            }
            first = false;
            if (skipOperator("**")) {
                requireOrder(spreadNamed == null);
                spreadNamed = expression();
            } else if (skipOperator("*")) {
                requireOrder(spread == null && spreadNamed == null);
                spread = expression();
            } else if (current().type() == Token.Type.NAME && peek(1).isOperator("=")) {
                requireOrder(spreadNamed == null);
                names.add(current().text());
                at += 2;
                values.add(expression());
            } else {
                requireOrder(spread == null && spreadNamed == null && names.isEmpty());
                positional.add(expression());
            }
        }
        expectOperator(")");
        return new Expr.ArgumentList(positional, names, values, spread, spreadNamed);
    }

    private void requireOrder(boolean ordered) {
        if (!ordered) {
            throw error("arguments of a call in the wrong order");
        }
    }

    // --- tokens ---

    private Token current() {
        return tokens.get(at);
    }

    private Token peek(int ahead) {
        return tokens.get(Math.min(at + ahead, tokens.size() - 1));
    }

    private boolean skipName(String name) {
        if (current().isName(name)) {
            at++;
            return true;
        }
        return false;
    }

    private boolean skipOperator(String operator) {
        if (current().isOperator(operator)) {
            at++;
            return true;
        }
        return false;
    }

    private void expectName(String name) {
        if (!skipName(name)) {
            throw error("expected '" + name + "', got " + current().describe());
        }
    }

    private void expectOperator(String operator) {
        if (!skipOperator(operator)) {
            throw error("expected '" + operator + "', got " + current().describe());
        }
    }

    private void expect(Token.Type type, String spelling) {
        if (current().type() != type) {
            throw error("expected " + spelling + ", got " + current().describe());
        }
        at++;
    }

    /** A name that is assigned to. */
    private String plainName() {
        final String name = attributeName();
        if (Set.of("true", "false", "none", "True", "False", "None").contains(name)) {
            at--;
            throw error("cannot assign to '" + name + "'");
        }
        return name;
    }

    private String attributeName() {
        if (current().type() != Token.Type.NAME) {
            throw error("expected a name, got " + current().describe());
        }
        final String name = current().text();
        at++;
        return name;
    }

    private String dottedName() {
        final StringBuilder name = new StringBuilder(attributeName());
        while (skipOperator(".")) {
            name.append('.').append(attributeName());
        }
        return name.toString();
    }

    private TemplateException error(String reason) {
        return new TemplateException(TemplateException.Kind.SYNTAX, current().line(), reason);
    }
}
