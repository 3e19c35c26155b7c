package io.kvasir.router.policy;

/**
 * Brings selection policies of an embedder's own, found by {@link java.util.ServiceLoader}: their
 * names are values of {@code RouterSettings.SELECTION_POLICY} then. Needs a public constructor
 * without arguments, and a line in {@code
 * META-INF/services/io.kvasir.router.policy.SelectionPolicyProvider}.
 */
@FunctionalInterface
public interface SelectionPolicyProvider {
    /**
     * Its policies. Asked each time that a policy is looked for that is not built in. Where this
     * fails, or has a null, all of them are left out, with a line in the log.
     *
     * @return names of built-in policies are not looked for here
     */
    Iterable<SelectionPolicy> policies();
}
