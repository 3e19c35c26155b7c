package io.kvasir.cli;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.library.dependencies.SlicesRuleDefinition;

import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.Map;
import java.util.Set;

/** The direction of the rooms: who may know whom. */
class RoomsTest {
    /** Room to the rooms that it may know; itself and libraries aside. */
    private static final Map<String, Set<String>> MAY_KNOW =
            Map.ofEntries(
                    entry("core"),
                    entry("nats", "nixl"),
                    entry("pipeline", "core"),
                    entry("panama"),
                    entry("protocol"),
                    entry("nixl", "panama", "protocol"),
                    entry("router", "core", "pipeline"),
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
        return MAY_KNOW.keySet();
    }

    @ParameterizedTest
    @MethodSource("rooms")
    void aRoomKnowsOnlyTheRoomsBelowIt(String room) {
        for (String other : MAY_KNOW.keySet()) {
            if (!other.equals(room) && !MAY_KNOW.get(room).contains(other)) {
                noClasses()
                        .that()
                        .resideInAPackage("io.kvasir." + room + "..")
                        .should()
                        .dependOnClassesThat()
                        .resideInAPackage("io.kvasir." + other + "..")
                        .allowEmptyShould(true)
                        .check(classes);
            }
        }
    }

    @ParameterizedTest
    @MethodSource("rooms")
    void internalPackagesAreNobodyElsesBusiness(String room) {
        noClasses()
                .that()
                .resideOutsideOfPackage("io.kvasir." + room + "..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage("io.kvasir." + room + "..internal..")
                .allowEmptyShould(true)
                .check(classes);
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
                .areAssignableTo(java.util.concurrent.Executor.class)
                .check(classes);
    }

    @Test
    void noRoomHasACycleAmongItsPackages() {
        SlicesRuleDefinition.slices()
                .matching("io.kvasir.(*).(**)")
                .should()
                .beFreeOfCycles()
                .allowEmptyShould(true)
                .check(classes);
    }
}
