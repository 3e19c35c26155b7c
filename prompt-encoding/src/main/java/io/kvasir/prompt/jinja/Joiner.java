package io.kvasir.prompt.jinja;

/** Empty the first time it is called, its separator every other time. */
final class Joiner implements Callable {
    private final Object separator;
    private boolean used;

    Joiner(Arguments arguments) {
        separator = arguments.take("sep", ", ");
        arguments.end();
    }

    @Override
    public Object call(Arguments arguments) {
        arguments.end();
        final Object result = used ? separator : "";
        used = true;
        return result;
    }
}
