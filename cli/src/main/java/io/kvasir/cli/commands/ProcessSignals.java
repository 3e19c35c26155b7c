package io.kvasir.cli.commands;

import java.lang.reflect.Proxy;

/**
 * What happens on a signal. The JDK has no other way to a signal than {@code sun.misc.Signal},
 * which is exported for that and may not be named in source without a warning: it is called by
 * reflection.
 */
final class ProcessSignals {
    private ProcessSignals() {}

    /**
     * Has a signal run something, on a thread of its own, instead of ending the process.
     *
     * @param name without SIG
     * @return false where this JVM leaves the signal to the system, as with {@code -Xrs}
     */
    static boolean on(String name, Runnable action) {
        try {
            final Class<?> signal = Class.forName("sun.misc.Signal");
            final Class<?> handler = Class.forName("sun.misc.SignalHandler");
            final Object handling =
                    Proxy.newProxyInstance(
                            handler.getClassLoader(),
                            new Class<?>[] {handler},
                            (proxy, method, args) -> {
                                if (method.getName().equals("handle")) {
                                    action.run();
                                }
                                return null;
                            });
            signal.getMethod("handle", signal, handler)
                    .invoke(null, signal.getConstructor(String.class).newInstance(name), handling);
            return true;
        } catch (ReflectiveOperationException e) {
            return false;
        }
    }
}
