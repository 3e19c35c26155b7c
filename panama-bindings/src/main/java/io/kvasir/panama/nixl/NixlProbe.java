package io.kvasir.panama.nixl;

import io.kvasir.panama.libc.DynamicLoader;
import io.kvasir.panama.libc.LibC;
import io.kvasir.panama.nixl.NixlAvailability.Absent;
import io.kvasir.panama.nixl.NixlAvailability.Attempt;
import io.kvasir.panama.nixl.NixlAvailability.Available;

import java.io.IOException;
import java.lang.foreign.SymbolLookup;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Finds NIXL's C library, loads it and says why when that fails. Never throws.
 *
 * <p>Search order, each step used only if the ones before are not set: the file named by {@value
 * #LIBRARY_PROPERTY} or {@value #LIBRARY_VARIABLE}; the Python prefix named by {@value
 * #PREFIX_PROPERTY} or {@value #PREFIX_VARIABLE}; the prefixes in {@code VIRTUAL_ENV}, {@code
 * CONDA_PREFIX}, {@code /usr/local} and {@code /usr}, then the system's loader. In a prefix the
 * CUDA 13 wheel goes before the CUDA 12 wheel.
 *
 * <p>Loading takes 0.1 to 2 s and lasts for the life of the process: probe at start, never on a
 * request. Before loading, UCX is set through the environment to leave the signals alone that the
 * JVM lives on ({@code UCX_ERROR_SIGNALS}, {@code UCX_DEBUG_SIGNO}); that changes the environment
 * of the process, so no other native thread should be reading it then. Two copies of NIXL in one
 * process would share symbols at random; the second is refused.
 *
 * <p>A file that is cut short, foreign or no library at all is refused before the loader sees it. A
 * library damaged inside, or whose own dependencies are cut short, can still end the process.
 */
public final class NixlProbe {
    /** System property with the full path of {@code libnixl_capi.so}. */
    public static final String LIBRARY_PROPERTY = "kvasir.nixl.library";

    /** Environment variable with the full path of {@code libnixl_capi.so}. */
    public static final String LIBRARY_VARIABLE = "KVASIR_NIXL_LIBRARY";

    /** System property with a Python prefix (a venv) where a NIXL wheel is installed. */
    public static final String PREFIX_PROPERTY = "kvasir.nixl.venv";

    /** Environment variable with a Python prefix (a venv) where a NIXL wheel is installed. */
    public static final String PREFIX_VARIABLE = "KVASIR_NIXL_VENV";

    private static final List<Path> COMMON_PREFIXES =
            List.of(Path.of("/usr/local"), Path.of("/usr"));
    private static final Pattern DIST_INFO = Pattern.compile("nixl_(cu\\d+)-([^-]+)\\.dist-info");
    private static final String REMEDY =
            "install a NIXL wheel (pip install --no-deps nixl-cu13) and set -D"
                    + PREFIX_PROPERTY
                    + " to its Python prefix, or -D"
                    + LIBRARY_PROPERTY
                    + " to its libnixl_capi.so";

    /** The copy of NIXL that this process has; guarded by the class. */
    private static String loadedNixl;

    private final List<Attempt> attempts = new ArrayList<>();
    private final NixlSearchPath places;

    private NixlProbe(NixlSearchPath places) {
        this.places = places;
        attempts.addAll(places.vain());
    }

    /**
     * Searches for NIXL by the settings of this process.
     *
     * @return the loaded library, or why there is none
     */
    public static NixlAvailability probe() {
        return probe(System::getProperty, System::getenv, COMMON_PREFIXES);
    }

    /**
     * Searches for NIXL by given settings, for embedders that keep their own.
     *
     * @param properties finds what {@link #LIBRARY_PROPERTY} and {@link #PREFIX_PROPERTY} are set
     *     to; null for unset
     * @param environment finds what an environment variable is set to; null for unset
     * @param commonPrefixes Python prefixes to look at when nothing is set
     * @return the loaded library, or why there is none
     */
    public static NixlAvailability probe(
            UnaryOperator<String> properties,
            UnaryOperator<String> environment,
            List<Path> commonPrefixes) {
        final Module module = NixlProbe.class.getModule();
        if (!module.isNativeAccessEnabled()) {
            final String name = module.isNamed() ? module.getName() : "ALL-UNNAMED";
            return new Absent(
                    "native access is not enabled for "
                            + (module.isNamed() ? "module " + name : "the class path"),
                    List.of(),
                    "start Java with --enable-native-access=" + name);
        }
        if (!System.getProperty("os.name").equals("Linux")) {
            return new Absent(
                    "NIXL is built for Linux, this is " + System.getProperty("os.name"),
                    List.of(),
                    "run on Linux");
        }
        synchronized (NixlProbe.class) {
            return new NixlProbe(new NixlSearchPath(properties, environment, commonPrefixes))
                    .search();
        }
    }

    private NixlAvailability search() {
        for (String place : places.found()) {
            switch (tryPlace(place)) {
                case Available available -> {
                    return available;
                }
                case Absent absent -> attempts.add(new Attempt(place, absent.reason()));
            }
        }
        final Attempt last = attempts.getLast();
        return new Absent(last.place() + ": " + last.outcome(), attempts, REMEDY);
    }

    private NixlAvailability tryPlace(String place) {
        try {
            return load(place);
        } catch (IOException | RuntimeException e) {
            return absent(e.toString());
        }
    }

    private static Absent absent(String reason) {
        return new Absent(reason, List.of(), REMEDY);
    }

    private NixlAvailability load(String place) throws IOException {
        final boolean isFile = place.startsWith("/");
        if (isFile) {
            final Optional<String> problem = ElfFile.problem(Path.of(place));
            if (problem.isPresent()) {
                return absent(problem.get());
            }
        }
        final String identity = isFile ? Path.of(place).toRealPath().toString() : place;
        if (loadedNixl != null && isFile && !loadedNixl.equals(identity)) {
            return absent("another copy of NIXL is loaded in this process: " + loadedNixl);
        }
        // with UCX_HANDLE_ERRORS set outside, UCX would take SIGSEGV, which the JVM needs
        if (!LibC.setEnvironment("UCX_ERROR_SIGNALS", "")
                || !LibC.setEnvironment("UCX_DEBUG_SIGNO", "0")) {
            return absent("the environment cannot be changed to keep UCX off the JVM's signals");
        }
        return switch (DynamicLoader.open(place)) {
            case DynamicLoader.Outcome.Failed failed -> absent(failed.why());
            case DynamicLoader.Outcome.Loaded loaded -> inspect(place, identity, loaded.symbols());
        };
    }

    private static NixlAvailability inspect(String place, String identity, SymbolLookup symbols) {
        final boolean loopback = symbols.find(NixlSymbols.LOOPBACK_MARK).isPresent();
        final List<String> needed = new ArrayList<>();
        for (NixlFunction function : NixlFunction.values()) {
            needed.add(function.symbol());
        }
        final List<String> lacking = NixlSymbols.missing(symbols, needed);
        if (!lacking.isEmpty()) {
            return absent(
                    "lacks %d of %d functions that are called, first %s"
                            .formatted(lacking.size(), needed.size(), lacking.getFirst()));
        }
        if (!loopback) {
            loadedNixl = identity;
        }
        final NixlCapi capi = NixlCapi.bind(symbols);
        if (capi.isStub()) {
            return absent("is the stub that NIXL's bindings use where NIXL is not installed");
        }
        final List<String> missing =
                new ArrayList<>(NixlSymbols.missing(symbols, NixlSymbols.SINCE_1_0));
        final boolean complete = missing.isEmpty();
        final List<String> newer = NixlSymbols.missing(symbols, NixlSymbols.SINCE_1_5);
        missing.addAll(newer);
        final int known = NixlSymbols.SINCE_1_0.size() + NixlSymbols.SINCE_1_5.size();
        final String version =
                loopback
                        ? "ABI subset"
                        : wheelVersion(place).orElse(versionBySymbols(complete, newer.isEmpty()));
        return new Available(
                new NixlLibrary(capi, NixlTransferCalls.bind(symbols), place),
                place,
                version,
                loopback,
                known - missing.size(),
                missing);
    }

    private static String versionBySymbols(boolean complete, boolean newest) {
        if (!complete) {
            return "of unknown version";
        }
        return newest ? "1.5.0 or later" : "1.0.1 to 1.4.1";
    }

    /** Reads the version off the wheel's metadata folder beside the library's folder. */
    private static Optional<String> wheelVersion(String place) {
        final Path folder = Path.of(place).getParent();
        if (folder == null || folder.getParent() == null) {
            return Optional.empty();
        }
        try (DirectoryStream<Path> infos =
                Files.newDirectoryStream(folder.getParent(), "nixl_cu*.dist-info")) {
            for (Path info : infos) {
                final Matcher matcher = DIST_INFO.matcher(info.getFileName().toString());
                if (matcher.matches()
                        && folder.endsWith(".nixl_" + matcher.group(1) + ".mesonpy.libs")) {
                    return Optional.of(matcher.group(2));
                }
            }
        } catch (IOException e) {
            return Optional.empty();
        }
        return Optional.empty();
    }
}
