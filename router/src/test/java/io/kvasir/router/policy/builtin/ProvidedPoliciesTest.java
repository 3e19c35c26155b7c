package io.kvasir.router.policy.builtin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.CostModel;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.Picker;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Undeclared;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Providers of selection policies on the class path: one that fails costs the others nothing. */
class ProvidedPoliciesTest {
    private static final String GOOD = "good";

    @TempDir Path temp;

    private static SelectionPolicy policy(String name) {
        return new SelectionPolicy(name, Eligibility.ALL, CostModel.LINEAR, Picker.LOWEST);
    }

    /** One that does as it should. */
    public static final class Good implements SelectionPolicyProvider {
        /** For the loader. */
        public Good() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            return List.of(policy(GOOD));
        }
    }

    /** One that cannot be made. */
    public static final class Unmade implements SelectionPolicyProvider {
        /** For the loader. */
        public Unmade() {
            throw new IllegalStateException("no licence");
        }

        @Override
        public Iterable<SelectionPolicy> policies() {
            return List.of();
        }
    }

    /** One that throws. */
    public static final class Throwing implements SelectionPolicyProvider {
        /** For the loader. */
        public Throwing() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            throw new IllegalStateException("no table");
        }
    }

    /** One that throws what it does not declare. */
    public static final class Undeclaring implements SelectionPolicyProvider {
        /** For the loader. */
        public Undeclaring() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            throw Undeclared.thrown(new IOException("no file"));
        }
    }

    /** One that is not linked. */
    public static final class Unlinked implements SelectionPolicyProvider {
        /** For the loader. */
        public Unlinked() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            throw new NoClassDefFoundError("org/other/Table");
        }
    }

    /** One that has nothing. */
    public static final class Null implements SelectionPolicyProvider {
        /** For the loader. */
        public Null() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            return null;
        }
    }

    /** One that has a policy, and none. */
    public static final class NullElement implements SelectionPolicyProvider {
        /** For the loader. */
        public NullElement() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            return Arrays.asList(policy("half"), null);
        }
    }

    /** One that is none. */
    public static final class Other {
        /** For the loader. */
        public Other() {}
    }

    private static String nested(String name) {
        return name.indexOf('.') < 0 ? ProvidedPoliciesTest.class.getName() + "$" + name : name;
    }

    private interface Step {
        void run() throws Exception;
    }

    /** Runs a step where the class path has these providers, too. */
    private void with(List<String> providers, Step step) throws Exception {
        final Path services = Files.createDirectories(temp.resolve("META-INF/services"));
        Files.write(services.resolve(SelectionPolicyProvider.class.getName()), providers);
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {temp.toUri().toURL()}, getClass().getClassLoader())) {
            by(loader, step);
        }
    }

    private static void by(ClassLoader context, Step step) throws Exception {
        final Thread thread = Thread.currentThread();
        final ClassLoader before = thread.getContextClassLoader();
        try {
            thread.setContextClassLoader(context);
            step.run();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static RouterConfig.Builder named(String name) {
        return KvRouter.builder()
                .blockSize(16)
                .maxWorkers(4)
                .maxBlocks(1_024, 1_024)
                .set("selection-policy", name);
    }

    @ParameterizedTest
    @CsvSource({
        "Unmade, no licence",
        "Throwing, no table",
        "Undeclaring, no file",
        "Unlinked, org/other/Table",
        "Null, policies() is null",
        "NullElement, policies() has an element that is null",
        "Other, not a subtype",
        "no.such.Provider, not found",
        "not a name, Illegal",
    })
    void aProviderThatFailsIsLeftOutAndSaidWhereANameIsNotFound(String name, String why)
            throws Exception {
        final boolean isName = name.indexOf(' ') < 0;
        final String provider = isName ? nested(name) : name;
        with(
                List.of(provider, nested("Good")),
                () -> {
                    if (isName) { // else the whole file cannot be read
                        named(GOOD).build().close();
                    }
                    named("last-slot").build().close(); // of another file
                    for (String policy : new String[] {"best", "half"}) {
                        final IllegalArgumentException refused =
                                assertThrows(IllegalArgumentException.class, () -> named(policy));
                        final String said = refused.getMessage();
                        assertTrue(
                                said.startsWith("selection-policy=" + policy + " is none of:"),
                                said);
                        assertTrue(said.contains("linear, prefill-time"), said);
                        assertEquals(isName, said.contains(", " + GOOD), said);
                        assertTrue(!isName || said.contains(provider), said);
                        assertTrue(said.contains(why), said);
                        assertEquals(said.indexOf(why), said.lastIndexOf(why), said);
                    }
                    for (String builtIn : SelectionPolicies.builtIn()) {
                        named(builtIn).build().close();
                    }
                });
    }

    @Test
    void allThatFailAreSaid() throws Exception {
        with(
                List.of(nested("Throwing"), nested("Null"), nested("Unmade")),
                () -> {
                    final String said =
                            assertThrows(IllegalArgumentException.class, () -> named("best"))
                                    .getMessage();
                    assertTrue(
                            said.endsWith(
                                    "; what is on the class path failed: "
                                            + nested("Throwing")
                                            + ": java.lang.IllegalStateException: no table; "
                                            + nested("Null")
                                            + ": policies() is null; Provider "
                                            + nested("Unmade")
                                            + " could not be instantiated:"
                                            + " java.lang.IllegalStateException: no licence"),
                            said);
                });
    }

    @Test
    void aThreadWithAnyContextClassLoaderFindsWhatIsBesideTheRouter() throws Exception {
        by(ClassLoader.getPlatformClassLoader(), () -> named("last-slot").build().close());
        by(null, () -> named("last-slot").build().close());
    }

    /** One that counts how often it is made. */
    public static final class Counted implements SelectionPolicyProvider {
        private static final AtomicInteger MADE = new AtomicInteger();

        /** For the loader. */
        public Counted() {
            MADE.incrementAndGet();
        }

        @Override
        public Iterable<SelectionPolicy> policies() {
            return List.of(policy("counted"));
        }
    }

    @Test
    void eachProviderIsAskedOnce() throws Exception {
        with(
                List.of(nested("Counted")),
                () -> {
                    final int before = Counted.MADE.get();
                    final String said =
                            assertThrows(
                                            IllegalArgumentException.class,
                                            () -> SelectionPolicies.named("best"))
                                    .getMessage();
                    for (String name : List.of("last-slot", "counted")) {
                        assertTrue(said.contains(name), said);
                        assertEquals(said.indexOf(name), said.lastIndexOf(name), said);
                    }
                    assertEquals(1, Counted.MADE.get() - before);
                });
    }

    @Test
    void aRouterKeepsItsPolicyOnAThreadThatDoesNotSeeItsProvider() throws Exception {
        final List<KvRouter> made = new ArrayList<>();
        with(List.of(nested("Good")), () -> made.add(named(GOOD).build()));
        try (KvRouter router = made.getFirst()) {
            router.change(router.settings().with(RouterSettings.TEMPERATURE, 0.5));
            router.mode(RoutingMode.RANDOM);
            router.mode(RoutingMode.KV);
            router.addWorker(WorkerSpec.of(1, "w", "http://w"));
            final Decision decision = new Decision();
            router.select(router.newRequest().tokens(new int[64], 64), decision);
            assertEquals(GOOD, decision.policy());
        }
    }
}
