package io.kvasir.gateway.template;

/** Something that a template can call. */
@FunctionalInterface
interface Callable {
    Object call(Arguments arguments);
}
