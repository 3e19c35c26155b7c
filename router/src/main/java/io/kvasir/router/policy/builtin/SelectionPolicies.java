package io.kvasir.router.policy.builtin;

import io.kvasir.router.policy.SelectionPolicy;

import java.util.List;
import java.util.stream.Stream;

/** Finds selection policies by name: those that are built in, then those on the class path. */
public final class SelectionPolicies {
    private static final String SETTING = "selection-policy";

    private static final List<SelectionPolicy> BUILT_IN =
            List.of(
                    SelectionPolicy.LINEAR,
                    PrefillTimeCost.POLICY,
                    OlderFormulas.LOAD_DEVIATION,
                    OlderFormulas.LOGITS);

    private SelectionPolicies() {}

    /** Names of those that are built in. */
    public static List<String> builtIn() {
        return BUILT_IN.stream().map(SelectionPolicy::name).toList();
    }

    /**
     * The policy of a name.
     *
     * @throws IllegalArgumentException if there is none; the message lists what there is, and which
     *     providers on the class path failed, and why
     */
    public static SelectionPolicy named(String name) {
        final SelectionPolicy builtIn = findOrNull(BUILT_IN, name);
        if (builtIn != null) {
            return builtIn;
        }
        final ProvidedPolicies provided = ProvidedPolicies.look();
        final SelectionPolicy found = findOrNull(provided.policies(), name);
        if (found == null) {
            throw none(name, provided);
        }
        return found;
    }

    /**
     * Whether there is a policy of a name.
     *
     * @throws IllegalArgumentException if there is none, and a provider on the class path failed,
     *     which may have it; see {@link #named}
     */
    public static boolean has(String name) {
        if (findOrNull(BUILT_IN, name) != null) {
            return true;
        }
        final ProvidedPolicies provided = ProvidedPolicies.look();
        if (findOrNull(provided.policies(), name) != null) {
            return true;
        }
        if (!provided.failures().isEmpty()) {
            throw none(name, provided);
        }
        return false;
    }

    private static SelectionPolicy findOrNull(List<SelectionPolicy> all, String name) {
        for (SelectionPolicy each : all) {
            if (each.name().equals(name)) {
                return each;
            }
        }
        return null;
    }

    private static IllegalArgumentException none(String name, ProvidedPolicies provided) {
        return new IllegalArgumentException(
                SETTING
                        + "="
                        + name
                        + " is none of: "
                        + String.join(
                                ", ",
                                Stream.concat(BUILT_IN.stream(), provided.policies().stream())
                                        .map(SelectionPolicy::name)
                                        .toList())
                        + (provided.failures().isEmpty()
                                ? "; add what provides it to the class path"
                                : "; what is on the class path failed: "
                                        + String.join("; ", provided.failures())));
    }
}
