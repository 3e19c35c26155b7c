package io.kvasir.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executor;

/** The direction of the rooms, and what each of them shows to others. */
@Order(1) // takes long: begins first, beside the others
class RoomsTest {
    private static final String BASE = "io.kvasir.";

    /** Room to the rooms that it knows; itself and libraries aside. */
    private static final Map<String, Set<String>> KNOWS =
            Map.ofEntries(
                    entry("testsupport"),
                    entry("core"),
                    entry("pipeline", "core"),
                    entry("router", "core", "pipeline"),
                    entry("panama"),
                    entry("protocol"),
                    entry("registry"),
                    entry("nixl", "panama", "protocol", "registry"),
                    entry("nats", "core", "pipeline", "router", "nixl", "registry"),
                    entry("host", "registry"),
                    entry("sim", "nixl", "host", "registry"),
                    entry("prompt"),
                    entry("chronicle", "core", "prompt", "router"),
                    entry(
                            "gateway",
                            "core",
                            "pipeline",
                            "router",
                            "prompt",
                            "protocol",
                            "nixl",
                            "registry",
                            "nats"),
                    entry("services", "core", "pipeline", "router", "gateway"),
                    entry("opstreams", "core"),
                    entry(
                            "bench",
                            "core",
                            "pipeline",
                            "router",
                            "nixl",
                            "nats",
                            "panama",
                            "opstreams",
                            "prompt",
                            "chronicle"),
                    entry(
                            "cli",
                            "core",
                            "pipeline",
                            "router",
                            "prompt",
                            "chronicle",
                            "protocol",
                            "registry",
                            "gateway",
                            "services",
                            "sim",
                            "nixl",
                            "nats",
                            "panama",
                            "opstreams"));

    /** Packages that other rooms and embedders may use; every other package is of its room only. */
    private static final Set<String> API =
            Set.of(
                    "testsupport",
                    "core.closing",
                    "core.counters",
                    "core.hash",
                    "core.index",
                    "core.load",
                    "core.memory",
                    "core.radix",
                    "pipeline.booking",
                    "pipeline.capture",
                    "pipeline.events",
                    "pipeline.log",
                    "pipeline.publish",
                    "pipeline.ring",
                    "pipeline.snapshot",
                    "pipeline.source",
                    "pipeline.wire",
                    "router",
                    "router.client",
                    "router.queue",
                    "router.disagg",
                    "router.journal",
                    "router.load",
                    "router.policy",
                    "router.replica",
                    "router.settings",
                    "router.spi",
                    "router.state",
                    "panama.cuda",
                    "panama.libc",
                    "panama.nixl",
                    "protocol.handoff",
                    "protocol.sse",
                    "registry",
                    "registry.etcd",
                    "registry.kubernetes",
                    "nixl",
                    "nixl.engine",
                    "nixl.exchange",
                    "nixl.exchange.etcd",
                    "nixl.exchange.zmq",
                    "nixl.link",
                    "nixl.loopback",
                    "nixl.memory",
                    "nixl.probe",
                    "nixl.transport",
                    "nixl.vllm",
                    "nats",
                    "nats.events",
                    "nats.replica",
                    "host",
                    "nats.state",
                    "sim",
                    "sim.config",
                    "sim.faults",
                    "sim.state",
                    "chronicle",
                    "prompt.chat",
                    "prompt.jinja",
                    "prompt.memo",
                    "prompt.tokenizer",
                    "gateway",
                    "gateway.config",
                    "gateway.disagg",
                    "gateway.openai",
                    "gateway.server",
                    "services.indexer",
                    "services.select",
                    "services.slots",
                    "opstreams.alternatives",
                    "opstreams.cliffs",
                    "opstreams.generate",
                    "opstreams.kvops",
                    "opstreams.report");

    /** Rooms of which nothing is API; benchmarks and {@code main} methods are public by need. */
    private static final Set<String> PROGRAMS = Set.of("bench", "cli");

    private static JavaClasses classes;

    private static Map.Entry<String, Set<String>> entry(String room, String... below) {
        return Map.entry(room, Set.of(below));
    }

    @BeforeAll
    static void importClasses() {
        classes =
                new ClassFileImporter()
                        .withImportOption(ImportOption.Predefined.DO_NOT_INCLUDE_TESTS)
                        .importPackages("io.kvasir");
    }

    static Set<String> rooms() {
        return new TreeSet<>(KNOWS.keySet());
    }

    @Test
    void everyRoomIsListed() {
        final Set<String> seen = new TreeSet<>();
        classes.forEach(c -> seen.add(roomOf(c)));
        assertEquals(rooms(), seen);
    }

    @ParameterizedTest
    @MethodSource("rooms")
    void aRoomKnowsTheRoomsBelowItAndNoOther(String room) {
        final Map<String, String> known = new TreeMap<>();
        for (JavaClass c : classes) {
            if (roomOf(c).equals(room)) {
                for (Dependency d : c.getDirectDependenciesFromSelf()) {
                    final JavaClass target = d.getTargetClass().getBaseComponentType();
                    if (isOurs(target) && !roomOf(target).equals(room)) {
                        known.putIfAbsent(roomOf(target), d.getDescription());
                    }
                }
            }
        }
        assertEquals(
                new TreeSet<>(KNOWS.get(room)),
                known.keySet(),
                () -> "an arrow is new or no longer used; one class for each: " + known);
    }

    @Test
    void otherRoomsUseOnlyTheApiOfARoom() {
        final Set<String> seen = new TreeSet<>();
        for (JavaClass c : classes) {
            for (Dependency d : c.getDirectDependenciesFromSelf()) {
                final JavaClass target = d.getTargetClass().getBaseComponentType();
                if (isOurs(target)
                        && !roomOf(target).equals(roomOf(c))
                        && !API.contains(packageOf(target))) {
                    seen.add(d.getDescription());
                }
            }
        }
        assertEquals(Set.of(), seen);
    }

    /** A type of a package that is not API earns its {@code public} by a sibling package's use. */
    @Test
    void whatIsPublicIsApiOrUsedByAnotherPackage() {
        final Set<String> used = new TreeSet<>();
        for (JavaClass c : classes) {
            for (Dependency d : c.getDirectDependenciesFromSelf()) {
                final JavaClass target = d.getTargetClass().getBaseComponentType();
                if (!target.getPackageName().equals(c.getPackageName())) {
                    used.add(topLevelName(target));
                }
            }
        }
        final Set<String> needless = new TreeSet<>();
        for (JavaClass c : classes) {
            final boolean isPublic = c.getModifiers().contains(JavaModifier.PUBLIC);
            if (isPublic
                    && c.isTopLevelClass()
                    && !API.contains(packageOf(c))
                    && !PROGRAMS.contains(roomOf(c))
                    && !used.contains(c.getName())) {
                needless.add(c.getName());
            }
        }
        assertEquals(Set.of(), needless);
    }

    private static boolean isOurs(JavaClass c) {
        return c.getName().startsWith(BASE);
    }

    private static String topLevelName(JavaClass c) {
        return c.getName().split("\\$", 2)[0];
    }

    private static String packageOf(JavaClass c) {
        return c.getPackageName().substring(BASE.length());
    }

    /** The word after {@code io.kvasir} in the name of its package. */
    private static String roomOf(JavaClass c) {
        return c.getPackageName().substring(BASE.length()).split("\\.", 2)[0];
    }

    @Test
    void theCoreKnowsNoThreadAndNoClock() {
        noClasses()
                .that()
                .resideInAPackage("io.kvasir.core..")
                .should()
                .callMethod(System.class, "nanoTime")
                .orShould()
                .callMethod(System.class, "currentTimeMillis")
                .orShould()
                .dependOnClassesThat()
                .areAssignableTo(Executor.class)
                .check(classes);
    }

    @Test
    void noCycleAmongPackagesTheRootPackagesOfRoomsIncluded() {
        SlicesRuleDefinition.slices()
                .assignedFrom(new ByPackage())
                .should()
                .beFreeOfCycles()
                .check(classes);
    }

    /** Each package is a slice; a pattern such as {@code io.kvasir.(*).(**)} leaves roots out. */
    private static final class ByPackage implements SliceAssignment {
        @Override
        public SliceIdentifier getIdentifierOf(JavaClass c) {
            return c.getPackageName().startsWith(BASE)
                    ? SliceIdentifier.of(c.getPackageName())
                    : SliceIdentifier.ignore();
        }

        @Override
        public String getDescription() {
            return "packages";
        }
    }
}
