package io.kvasir.router.policy.builtin;

import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;

import java.util.ArrayList;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
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
     * @throws IllegalArgumentException if there is none, or one on the class path cannot be loaded;
     *     the message lists what there is
     */
    public static SelectionPolicy named(String name) {
        for (SelectionPolicy each : BUILT_IN) {
            if (each.name().equals(name)) {
                return each;
            }
        }
        final List<SelectionPolicy> provided = provided(name);
        for (SelectionPolicy each : provided) {
            if (each.name().equals(name)) {
                return each;
            }
        }
        throw new IllegalArgumentException(
                SETTING
                        + "="
                        + name
                        + " is none of: "
                        + String.join(
                                ", ",
                                Stream.concat(BUILT_IN.stream(), provided.stream())
                                        .map(SelectionPolicy::name)
                                        .toList())
                        + "; add what provides it to the class path");
    }

    /** Whether there is a policy of a name; false too where what is on the class path fails. */
    public static boolean has(String name) {
        try {
            named(name);
            return true;
        } catch (IllegalArgumentException e) {
            return false;
        }
    }

    private static List<SelectionPolicy> provided(String wanted) {
        final List<SelectionPolicy> all = new ArrayList<>();
        try {
            for (SelectionPolicyProvider provider :
                    ServiceLoader.load(SelectionPolicyProvider.class)) {
                provider.policies().forEach(all::add);
            }
        } catch (ServiceConfigurationError | RuntimeException e) {
            throw new IllegalArgumentException(
                    SETTING
                            + "="
                            + wanted
                            + " cannot be looked for: a provider on the class path fails: "
                            + e,
                    e);
        }
        return all;
    }
}
