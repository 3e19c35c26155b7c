package io.kvasir.testsupport;

/**
 * Throws checked exceptions where none is declared, as code in Kotlin, Scala and Groovy does, and
 * Java by Lombok's {@code @SneakyThrows}.
 */
public final class Undeclared {
    private Undeclared() {}

    /**
     * Throws what it is given as it is; call it as {@code throw Undeclared.thrown(e)}.
     *
     * @param what is thrown
     * @return never
     */
    public static RuntimeException thrown(Throwable what) {
        throw Undeclared.<RuntimeException>as(what);
    }

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"}) // the caller's word for it
    private static <T extends Throwable> T as(Throwable what) throws T {
        throw (T) what;
    }
}
