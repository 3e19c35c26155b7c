package io.kvasir.prompt.jinja;

/**
 * One token of a template.
 *
 * @param type what it is
 * @param text text of data, name of a name, spelling of an operator, content of a string
 * @param value number of a number, else null
 * @param line line it begins on, from 1
 */
record Token(Type type, String text, Object value, int line) {
    enum Type {
        DATA,
        BLOCK_BEGIN,
        BLOCK_END,
        VARIABLE_BEGIN,
        VARIABLE_END,
        NAME,
        STRING,
        NUMBER,
        OPERATOR,
        END
    }

    boolean isName(String name) {
        return type == Type.NAME && text.equals(name);
    }

    boolean isOperator(String operator) {
        return type == Type.OPERATOR && text.equals(operator);
    }

    /** For error messages. */
    String describe() {
        return switch (type) {
            case DATA -> "text";
            case BLOCK_BEGIN -> "'{%'";
            case BLOCK_END -> "'%}'";
            case VARIABLE_BEGIN -> "'{{'";
            case VARIABLE_END -> "'}}'";
            case STRING -> "a string";
            case END -> "the end of the template";
            case NAME, NUMBER, OPERATOR -> "'" + text + "'";
        };
    }
}
