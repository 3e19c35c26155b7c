package io.kvasir.prompt.jinja;

/** Something that a template can call. */
@FunctionalInterface
interface Callable {
    Object call(Arguments arguments);
}
