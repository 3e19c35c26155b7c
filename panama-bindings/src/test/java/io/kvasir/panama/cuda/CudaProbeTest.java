package io.kvasir.panama.cuda;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.panama.cuda.CudaAvailability.Absent;
import io.kvasir.panama.cuda.CudaAvailability.Available;
import io.kvasir.panama.cuda.CudaAvailability.Cause;
import io.kvasir.testsupport.Gcc;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;

@Tag("integration")
class CudaProbeTest {
    @TempDir private Path folder;

    private static Absent absent(CudaAvailability answer) {
        return assertInstanceOf(Absent.class, answer, answer.describe());
    }

    @Test
    void withoutADriverTheAnswerHasTheLoadersOwnWords() {
        final CudaAvailability answer = CudaProbe.probe(property -> null, variable -> null);
        assumeTrue(
                answer instanceof Absent a && a.cause() == Cause.LIBRARY,
                "skipped: this machine has a driver: " + answer.describe());
        final Absent absent = absent(answer);
        assertEquals(
                "libcuda.so.1: cannot open shared object file: No such file or directory",
                absent.reason());
        assertEquals(
                "CUDA is not available: "
                        + absent.reason()
                        + "; install NVIDIA's driver, or set -Dkvasir.cuda.library to its"
                        + " libcuda.so.1",
                absent.describe());
        assertEquals(absent.describe(), CudaProbe.probe().describe());
    }

    @Test
    void aDriverIsDescribedWithItsVersionAndDevices() {
        final Available available =
                assertInstanceOf(Available.class, FakeCuda.build(folder).probe());
        assertEquals(13020, available.driverVersion());
        assertEquals(
                "CUDA 13.2: %s, 2 devices: 0 Fake GPU 0, 6.0 GiB, 0000:40:00.0, 1 Fake GPU 1,"
                                .formatted(folder.resolve("libfake_cuda.so"))
                        + " 6.0 GiB, 0000:41:00.0",
                available.describe());
        final CudaDevice second = available.devices().get(1);
        assertEquals(1, second.ordinal());
        assertEquals("Fake GPU 1", second.name());
        assertEquals(6L << 30, second.totalMemoryBytes());
        assertEquals("0000:41:00.0", second.pciBusId());
        assertEquals(UUID.fromString("01112131-4151-6171-8191-a1b1c1d1e1f1"), second.uuid());
        assertEquals("9.0", second.computeCapability());
    }

    @Test
    void theVariableNamesTheLibraryAndThePropertyGoesFirst() {
        final Path library = FakeCuda.compile(folder.resolve("libnamed.so"));
        assertInstanceOf(
                Available.class,
                CudaProbe.probe(
                        property -> " ",
                        Map.of(CudaProbe.LIBRARY_VARIABLE, library.toString())::get));
        final Absent absent =
                absent(CudaProbe.probe(property -> "/no/such", variable -> library.toString()));
        assertTrue(absent.reason().startsWith("/no/such: "), absent.reason());
    }

    @ParameterizedTest
    @CsvSource({
        "100, CUDA_ERROR_NO_DEVICE, nvidia-smi shows a GPU",
        "803, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, restart after the driver's update",
        "34, CUDA_ERROR_STUB_LIBRARY, stub library",
        "802, CUDA_ERROR_SYSTEM_NOT_READY, fabric manager",
        "804, CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, compatibility library",
        "999, CUDA_ERROR_UNKNOWN, dmesg"
    })
    void whatCuInitAnswersIsNamedWithItsRemedy(int code, String name, String remedy) {
        final FakeCuda fake = FakeCuda.build(folder);
        fake.fail(CudaFunction.INIT, code);
        final Absent absent = absent(fake.probe());
        assertEquals(Cause.DRIVER, absent.cause());
        assertEquals(
                "cuInit of %s answers %d %s (words of the driver)"
                        .formatted(folder.resolve("libfake_cuda.so"), code, name),
                absent.reason());
        assertTrue(absent.remedy().contains(remedy), absent.remedy());
    }

    @Test
    void aDriverThatCountsNoDeviceIsAnAnswerOfItsOwn() {
        final FakeCuda fake = FakeCuda.build(folder);
        fake.setDevices(0);
        final Absent absent = absent(fake.probe());
        assertEquals(Cause.NO_DEVICE, absent.cause());
        assertTrue(absent.reason().endsWith("counts 0 devices"), absent.reason());
    }

    @Test
    void aLibraryThatLacksAFunctionIsRefusedByItsName() {
        final Absent absent =
                absent(
                        FakeCuda.probe(
                                FakeCuda.compile(
                                        folder.resolve("libold.so"), "-DFAKE_CUDA_LACKS_IPC")));
        assertEquals(Cause.SYMBOL, absent.cause());
        assertTrue(absent.reason().endsWith("first cuIpcOpenMemHandle_v2"), absent.reason());
        assertTrue(absent.reason().contains("lacks 1 of"), absent.reason());
    }

    @Test
    void aDeviceThatCannotBeReadIsAnAnswer() {
        final FakeCuda fake = FakeCuda.build(folder);
        fake.fail(CudaFunction.DEVICE_GET_UUID, 1, 999);
        final Absent absent = absent(fake.probe());
        assertEquals(Cause.DRIVER, absent.cause());
        assertEquals(
                "cuDeviceGetUuid_v2 failed: CUDA_ERROR_UNKNOWN (999), device=1", absent.reason());
    }

    @Test
    void aFileThatIsNoLibraryIsAnAnswer() throws IOException {
        final Path text = Files.writeString(folder.resolve("text.so"), "not a library");
        final Absent absent = absent(FakeCuda.probe(text));
        assertEquals(Cause.LIBRARY, absent.cause());
        assertTrue(absent.reason().contains("file too short"), absent.reason());
    }

    @ParameterizedTest
    @ValueSource(strings = {"\0", "a\0b.so", "no-such.so", ".", "/", "/dev/null", "/proc/self/mem"})
    void oddNamesAreAnswers(String name) {
        final Absent absent = absent(CudaProbe.probe(property -> name, variable -> null));
        assertEquals(Cause.LIBRARY, absent.cause());
        assertFalse(absent.reason().isEmpty());
    }

    @Test
    void withoutTheFlagTheAnswerNamesItAndNothingIsWarnedAbout() {
        final Gcc.Result result =
                Gcc.run(
                        folder,
                        List.of(
                                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                                "-Xmx64m",
                                "-XX:+UseSerialGC",
                                "-cp",
                                System.getProperty("java.class.path"),
                                Main.class.getName()));
        assertEquals(
                "CUDA is not available: native access is not enabled for the class path;"
                        + " start Java with --enable-native-access=ALL-UNNAMED\n",
                result.out());
        assertEquals(0, result.exit());
    }

    /** Prints what the probe of this process answers. */
    static final class Main {
        public static void main(String[] args) {
            System.out.println(CudaProbe.probe().describe());
        }
    }
}
