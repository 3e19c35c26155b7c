package io.kvasir.panama.nixl;

import io.kvasir.panama.nixl.NixlAvailability.Attempt;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/**
 * Where {@code libnixl_capi.so} may lie, from the settings of a process. A path that was named by
 * the operator is the only one: finding another copy there would hide the mistake.
 */
final class NixlSearchPath {
    private static final String LIBRARY = "libnixl_capi.so";
    private static final List<String> WHEELS = List.of("cu13", "cu12");
    private static final List<String> LIB_FOLDERS = List.of("lib", "lib64");
    private static final List<String> PACKAGE_FOLDERS = List.of("site-packages", "dist-packages");

    private final UnaryOperator<String> properties;
    private final UnaryOperator<String> environment;
    private final List<Path> commonPrefixes;
    private final List<Attempt> vain = new ArrayList<>();
    private final List<String> found = new ArrayList<>();

    NixlSearchPath(
            UnaryOperator<String> properties,
            UnaryOperator<String> environment,
            List<Path> commonPrefixes) {
        this.properties = properties;
        this.environment = environment;
        this.commonPrefixes = commonPrefixes;
        final String library = named(NixlProbe.LIBRARY_PROPERTY, NixlProbe.LIBRARY_VARIABLE);
        final String prefix = named(NixlProbe.PREFIX_PROPERTY, NixlProbe.PREFIX_VARIABLE);
        if (library != null) {
            addLibrary(library);
        } else if (prefix != null) {
            addPrefix(prefix);
        } else {
            addUsual();
        }
    }

    /** Paths that hold a file of the right name, best first; a bare name is for the loader. */
    List<String> found() {
        return found;
    }

    /** Paths that hold none. */
    List<Attempt> vain() {
        return vain;
    }

    private String named(String property, String variable) {
        final String value = properties.apply(property);
        final String chosen = isBlank(value) ? environment.apply(variable) : value;
        return isBlank(chosen) ? null : chosen;
    }

    private static boolean isBlank(String value) {
        return value == null || value.isBlank();
    }

    private void addLibrary(String library) {
        try {
            found.add(Path.of(library).toAbsolutePath().toString());
        } catch (InvalidPathException e) {
            vain.add(new Attempt(library, "not a path: " + e.getMessage()));
        }
    }

    private void addUsual() {
        for (String variable : List.of("VIRTUAL_ENV", "CONDA_PREFIX")) {
            final String prefix = environment.apply(variable);
            if (!isBlank(prefix)) {
                addPrefix(prefix);
            }
        }
        commonPrefixes.forEach(this::addPrefix);
        found.add(LIBRARY);
    }

    private void addPrefix(String prefix) {
        try {
            addPrefix(Path.of(prefix).toAbsolutePath());
        } catch (InvalidPathException e) {
            vain.add(new Attempt(prefix, "not a path: " + e.getMessage()));
        }
    }

    private void addPrefix(Path prefix) {
        final int before = found.size();
        for (String wheel : WHEELS) {
            for (Path packages : packageFolders(prefix)) {
                final Path library =
                        packages.resolve(".nixl_" + wheel + ".mesonpy.libs").resolve(LIBRARY);
                if (Files.exists(library)) {
                    found.add(library.toString());
                }
            }
        }
        if (found.size() == before) {
            vain.add(
                    new Attempt(
                            prefix
                                    + "/lib*/python3*/{site,dist}-packages/.nixl_cu1{3,2}.mesonpy.libs",
                            "no " + LIBRARY));
        }
    }

    private List<Path> packageFolders(Path prefix) {
        final List<Path> folders = new ArrayList<>();
        for (String lib : LIB_FOLDERS) {
            for (Path python : pythons(prefix.resolve(lib))) {
                PACKAGE_FOLDERS.forEach(name -> folders.add(python.resolve(name)));
            }
        }
        folders.sort(null);
        return folders;
    }

    private List<Path> pythons(Path lib) {
        final List<Path> pythons = new ArrayList<>();
        if (!Files.isDirectory(lib)) {
            return pythons;
        }
        try (DirectoryStream<Path> folders = Files.newDirectoryStream(lib, "python3*")) {
            folders.forEach(pythons::add);
        } catch (IOException | DirectoryIteratorException e) {
            vain.add(new Attempt(lib.toString(), "cannot be listed: " + e));
        }
        return pythons;
    }
}
