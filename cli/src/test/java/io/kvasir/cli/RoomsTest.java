package io.kvasir.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.tngtech.archunit.core.domain.Dependency;
import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SliceAssignment;
import com.tngtech.archunit.library.dependencies.SliceIdentifier;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executor;

/** The direction of the rooms: who knows whom. */
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
                    entry("nixl", "panama", "protocol"),
                    entry("nats", "nixl"),
                    entry("sim"),
                    entry("prompt"),
                    entry("gateway", "core", "pipeline", "router", "prompt"),
                    entry("opstreams", "core"),
                    entry("bench", "core", "pipeline", "router", "nixl", "panama", "opstreams"),
                    entry(
                            "cli",
                            "core",
                            "pipeline",
                            "router",
                            "prompt",
                            "gateway",
                            "sim",
                            "nixl",
                            "panama",
                            "opstreams"));

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
                    if (target.getName().startsWith(BASE) && !roomOf(target).equals(room)) {
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
