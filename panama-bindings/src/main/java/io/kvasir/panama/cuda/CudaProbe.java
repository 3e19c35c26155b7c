package io.kvasir.panama.cuda;

import io.kvasir.panama.cuda.CudaAvailability.Absent;
import io.kvasir.panama.cuda.CudaAvailability.Available;
import io.kvasir.panama.cuda.CudaAvailability.Cause;
import io.kvasir.panama.libc.DynamicLoader;

import java.lang.foreign.SymbolLookup;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Finds the CUDA driver, starts it and says why when that fails. Never throws.
 *
 * <p>The library is the file named by {@value #LIBRARY_PROPERTY} or {@value #LIBRARY_VARIABLE},
 * else {@value #LIBRARY} as the system's loader finds it. It stays loaded for the life of the
 * process. Starting the driver takes up to seconds on a machine with many GPUs: probe at start,
 * never on a request. No context is made. A library that is cut short or damaged inside can end the
 * process while the loader reads it.
 */
public final class CudaProbe {
    /** The driver's library. */
    public static final String LIBRARY = "libcuda.so.1";

    /** System property with the full path of the driver's library. */
    public static final String LIBRARY_PROPERTY = "kvasir.cuda.library";

    /** Environment variable with the full path of the driver's library. */
    public static final String LIBRARY_VARIABLE = "KVASIR_CUDA_LIBRARY";

    private CudaProbe() {}

    /**
     * Searches for CUDA by the settings of this process.
     *
     * @return the devices, or why there are none
     */
    public static CudaAvailability probe() {
        return probe(System::getProperty, System::getenv);
    }

    /**
     * Searches for CUDA by the settings given.
     *
     * @param properties value of a system property, null for none
     * @param environment value of an environment variable, null for none
     * @return the devices, or why there are none
     */
    static CudaAvailability probe(
            UnaryOperator<String> properties, UnaryOperator<String> environment) {
        final Module module = CudaProbe.class.getModule();
        if (!module.isNativeAccessEnabled()) {
            final String name = module.isNamed() ? module.getName() : "ALL-UNNAMED";
            return new Absent(
                    Cause.PLATFORM,
                    "native access is not enabled for "
                            + (module.isNamed() ? "module " + name : "the class path"),
                    "start Java with --enable-native-access=" + name);
        }
        if (!System.getProperty("os.name").equals("Linux")) {
            return new Absent(
                    Cause.PLATFORM,
                    "the bindings are for Linux, this is " + System.getProperty("os.name"),
                    "run on Linux");
        }
        final String library =
                setting(properties.apply(LIBRARY_PROPERTY), environment.apply(LIBRARY_VARIABLE));
        try {
            return load(library);
        } catch (RuntimeException e) {
            return new Absent(Cause.LIBRARY, library + ": " + e, remedyForLibrary());
        }
    }

    private static String setting(String property, String variable) {
        if (property != null && !property.isBlank()) {
            return property;
        }
        return variable != null && !variable.isBlank() ? variable : LIBRARY;
    }

    private static CudaAvailability load(String library) {
        if (library.indexOf('\0') >= 0) {
            return new Absent(Cause.LIBRARY, "the library's name has a NUL", remedyForLibrary());
        }
        return switch (DynamicLoader.open(library)) {
            case DynamicLoader.Outcome.Failed failed ->
                    new Absent(Cause.LIBRARY, failed.why(), remedyForLibrary());
            case DynamicLoader.Outcome.Loaded loaded -> inspect(library, loaded.symbols());
        };
    }

    private static String remedyForLibrary() {
        return "install NVIDIA's driver, or set -D" + LIBRARY_PROPERTY + " to its libcuda.so.1";
    }

    private static CudaAvailability inspect(String library, SymbolLookup symbols) {
        final List<String> lacking = new ArrayList<>();
        for (CudaFunction function : CudaFunction.values()) {
            if (function.isNeeded() && symbols.find(function.symbol()).isEmpty()) {
                lacking.add(function.symbol());
            }
        }
        if (!lacking.isEmpty()) {
            return new Absent(
                    Cause.SYMBOL,
                    "%s lacks %d of the functions that are bound, first %s"
                            .formatted(library, lacking.size(), lacking.getFirst()),
                    "use a driver for CUDA 12.0 or later");
        }
        return start(library, CudaApi.bind(symbols));
    }

    private static CudaAvailability start(String library, CudaApi api) {
        final int started = api.call(CudaFunction.INIT, 0);
        if (started != 0) {
            return new Absent(
                    Cause.DRIVER,
                    "cuInit of %s answers %d %s (%s)"
                            .formatted(
                                    library,
                                    started,
                                    api.errorName(started),
                                    api.errorText(started).orElse("the driver says no more")),
                    remedyFor(started));
        }
        try {
            final int version = api.intOf(CudaFunction.DRIVER_GET_VERSION, "version of " + library);
            final int count = api.intOf(CudaFunction.DEVICE_GET_COUNT, "devices of " + library);
            if (count == 0) {
                return new Absent(
                        Cause.NO_DEVICE,
                        library + " works and counts 0 devices",
                        remedyFor(CudaResult.NO_DEVICE.code()));
            }
            final List<CudaDevice> devices = new ArrayList<>();
            for (int ordinal = 0; ordinal < count; ordinal++) {
                devices.add(CudaDevice.read(api, ordinal));
            }
            return new Available(library, version, devices);
        } catch (CudaException e) {
            return new Absent(Cause.DRIVER, e.getMessage(), remedyFor(e.code()));
        }
    }

    private static String remedyFor(int code) {
        return switch (code) {
            case 34 -> "take the toolkit's stub library off the loader's path";
            case 100 -> "see whether nvidia-smi shows a GPU and CUDA_VISIBLE_DEVICES allows it";
            case 802 -> "wait for the fabric manager (systemctl status nvidia-fabricmanager)";
            case 803 -> "library and kernel module differ: restart after the driver's update";
            case 804 -> "take the compatibility library off the loader's path";
            default -> "see nvidia-smi and the kernel's log (dmesg, NVRM)";
        };
    }
}
