package io.kvasir.panama.nixl;

import java.util.List;

/** Whether NIXL can be used in this process: the answer of {@link NixlProbe}. */
public sealed interface NixlAvailability {
    /**
     * Says it in one line, for a log.
     *
     * @return what was found, or why nothing was
     */
    String describe();

    /**
     * NIXL is loaded and every function that the bindings call is there.
     *
     * @param library the loaded library
     * @param path where it lies, or its bare name when the system's loader found it
     * @param version the wheel's version where the path tells it, else the range its symbols allow
     * @param loopback whether it is Kvasir's stand-in, which moves nothing between processes
     * @param symbolsFound how many of the symbols known from NIXL 1.0.1 to 1.5.1 it exports
     * @param symbolsMissing those it does not export, none of them called by the bindings
     */
    record Available(
            NixlLibrary library,
            String path,
            String version,
            boolean loopback,
            int symbolsFound,
            List<String> symbolsMissing)
            implements NixlAvailability {
        /** Copies the list. */
        public Available {
            symbolsMissing = List.copyOf(symbolsMissing);
        }

        @Override
        public String describe() {
            return "%s %s: %s, %d symbols found, %d missing"
                    .formatted(
                            loopback ? "loopback instead of NIXL" : "NIXL",
                            version,
                            path,
                            symbolsFound,
                            symbolsMissing.size());
        }
    }

    /**
     * NIXL cannot be used.
     *
     * @param reason what is wrong, with the loader's own words where it has any
     * @param attempts every place looked at, in order
     * @param remedy the flag or variable to change
     */
    record Absent(String reason, List<Attempt> attempts, String remedy)
            implements NixlAvailability {
        /** Copies the list. */
        public Absent {
            attempts = List.copyOf(attempts);
        }

        @Override
        public String describe() {
            return "NIXL is not available: " + reason + "; " + remedy;
        }
    }

    /**
     * One place that was looked at.
     *
     * @param place a path, a pattern of paths or a bare library name
     * @param outcome what happened there
     */
    record Attempt(String place, String outcome) {}
}
