package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.panama.nixl.NixlAvailability.Absent;
import io.kvasir.panama.nixl.NixlAvailability.Available;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

@EnabledOnOs(OS.LINUX)
class NixlProbeTest {
    @TempDir Path folder;
    private final Map<String, String> properties = new HashMap<>();
    private final Map<String, String> environment = new HashMap<>();

    private NixlAvailability probe(Path... prefixes) {
        return NixlProbe.probe(properties::get, environment::get, List.of(prefixes));
    }

    /** Puts a copy of the loopback library where a wheel has it. */
    private Path wheel(String prefix, String python, String cuda, String version)
            throws IOException {
        final Path packages = folder.resolve(prefix + "/lib/" + python + "/site-packages");
        final Path libs =
                Files.createDirectories(packages.resolve(".nixl_" + cuda + ".mesonpy.libs"));
        Files.createDirectories(packages.resolve("nixl_" + cuda + "-" + version + ".dist-info"));
        return Files.move(Loopback.unpack(libs), libs.resolve("libnixl_capi.so"));
    }

    @Test
    void theLoopbackLibraryIsLoadedAndSaysWhatItIs() {
        properties.put(NixlProbe.LIBRARY_PROPERTY, Loopback.unpack(folder).toString());
        final Available available = assertInstanceOf(Available.class, probe());
        assertTrue(available.loopback());
        assertEquals(folder.resolve("libkvasir_loopback.so").toString(), available.path());
        assertEquals(86, available.symbolsFound());
        assertEquals(104 - 86, available.symbolsMissing().size());
        assertTrue(available.symbolsMissing().contains("nixl_capi_query_mem"));
        assertTrue(
                available.describe().startsWith("loopback instead of NIXL"), available.describe());
    }

    @Test
    void theVariableNamesTheLibraryToo() {
        environment.put(NixlProbe.LIBRARY_VARIABLE, Loopback.unpack(folder).toString());
        assertInstanceOf(Available.class, probe());
    }

    @Test
    void aNamedLibraryThatIsAbsentIsTheAnswerEvenWhereAnotherCouldBeFound() throws IOException {
        properties.put(NixlProbe.LIBRARY_PROPERTY, "/nowhere/libnixl_capi.so");
        environment.put("VIRTUAL_ENV", wheel("venv", "python3.12", "cu13", "1.5.1").toString());
        final Absent absent = assertInstanceOf(Absent.class, probe());
        assertEquals("/nowhere/libnixl_capi.so: no such file", absent.reason());
        assertEquals(1, absent.attempts().size());
        assertTrue(absent.remedy().contains("-Dkvasir.nixl.library"), absent.remedy());
    }

    @Test
    void aWheelIsFoundInANamedPrefixWithItsVersion() throws IOException {
        final Path library = wheel("venv", "python3.12", "cu13", "1.5.1");
        environment.put(NixlProbe.PREFIX_VARIABLE, folder.resolve("venv").toString());
        final Available available = assertInstanceOf(Available.class, probe());
        assertEquals(library.toString(), available.path());
    }

    @Test
    void theCuda13WheelGoesBeforeTheCuda12WheelAndVirtualEnvBeforeCommonPrefixes()
            throws IOException {
        final Path old = wheel("usr", "python3.11", "cu13", "1.4.1");
        wheel("venv", "python3.12", "cu12", "1.5.1");
        final Path best = wheel("venv", "python3.12", "cu13", "1.5.1");
        environment.put("VIRTUAL_ENV", folder.resolve("venv").toString());
        final Path usr = folder.resolve("usr");
        assertEquals(best.toString(), assertInstanceOf(Available.class, probe(usr)).path());
        environment.clear();
        assertEquals(old.toString(), assertInstanceOf(Available.class, probe(usr)).path());
    }

    @Test
    void aBrokenWheelIsPassedOverAndRemembered() throws IOException {
        final Path good = wheel("venv", "python3.12", "cu12", "1.5.1");
        Files.writeString(wheel("venv", "python3.12", "cu13", "1.5.1"), "half a download");
        properties.put(NixlProbe.PREFIX_PROPERTY, folder.resolve("venv").toString());
        assertEquals(good.toString(), assertInstanceOf(Available.class, probe()).path());
    }

    @Test
    void aPrefixWithoutAWheelIsNamedWithThePatternLookedFor() {
        properties.put(NixlProbe.PREFIX_PROPERTY, folder.toString());
        final Absent absent = assertInstanceOf(Absent.class, probe());
        assertTrue(absent.reason().contains(folder.toString()), absent.reason());
        assertTrue(absent.reason().endsWith("no libnixl_capi.so"), absent.reason());
    }

    @Test
    void withNothingInstalledEveryPlaceIsToldWithTheLoadersOwnWords() {
        environment.put("VIRTUAL_ENV", folder.resolve("venv").toString());
        final NixlAvailability answer = probe(folder.resolve("usr"));
        assumeTrue(
                answer instanceof Absent,
                "skipped: the system's loader finds a NIXL here: " + answer.describe());
        final Absent absent = (Absent) answer;
        assertEquals(3, absent.attempts().size());
        assertTrue(absent.reason().contains("cannot open shared object file"), absent.describe());
        assertTrue(absent.describe().contains("pip install"), absent.describe());
    }

    @Test
    void aLibraryCutShortAtAnyLengthIsAnAnswerAndNotACrash() throws IOException {
        final byte[] whole = Files.readAllBytes(Loopback.unpack(folder));
        for (int length = 0; length < 12_000; length += 512) {
            final Path file = folder.resolve("cut-" + length + ".so");
            Files.write(file, Arrays.copyOf(whole, length));
            properties.put(NixlProbe.LIBRARY_PROPERTY, file.toString());
            assertInstanceOf(Absent.class, probe(), "length " + length);
        }
    }

    @Test
    void aFileThatIsNoLibraryIsAnAnswer() throws IOException {
        properties.put(
                NixlProbe.LIBRARY_PROPERTY,
                Files.writeString(folder.resolve("text.so"), "not a library").toString());
        assertTrue(
                assertInstanceOf(Absent.class, probe()).reason().contains("not a shared library"));
    }

    @Test
    void anotherLibraryIsRefusedByTheFunctionItLacks() {
        final Path other = Path.of(System.getProperty("java.home"), "lib", "libzip.so");
        assumeTrue(Files.exists(other), "skipped: this JDK has no " + other);
        properties.put(NixlProbe.LIBRARY_PROPERTY, other.toString());
        final String reason = assertInstanceOf(Absent.class, probe()).reason();
        final int all = NixlFunction.values().length;
        assertTrue(reason.contains("lacks " + all + " of " + all + " functions"), reason);
        assertTrue(reason.contains("nixl_capi_is_stub"), reason);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {"\0", "a\0b.so", "relative.so", ".", "/", "/dev/zero", "/proc/self/mem"})
    void oddNamesAreAnswers(String name) {
        properties.put(NixlProbe.LIBRARY_PROPERTY, name);
        assertInstanceOf(Absent.class, probe());
        properties.clear();
        properties.put(NixlProbe.PREFIX_PROPERTY, name);
        assertInstanceOf(Absent.class, probe());
    }

    @Test
    void aBlankSettingIsNoSetting() {
        properties.put(NixlProbe.LIBRARY_PROPERTY, "  ");
        environment.put(NixlProbe.LIBRARY_VARIABLE, Loopback.unpack(folder).toString());
        assertInstanceOf(Available.class, probe());
    }

    @Test
    void theKnownSymbolsContainEveryFunctionThatIsCalled() {
        for (NixlFunction function : NixlFunction.values()) {
            assertTrue(NixlSymbols.SINCE_1_0.contains(function.symbol()), function.symbol());
            assertFalse(NixlSymbols.SINCE_1_5.contains(function.symbol()), function.symbol());
        }
        assertEquals(96, NixlSymbols.SINCE_1_0.size());
        assertEquals(8, NixlSymbols.SINCE_1_5.size());
    }
}
