package io.kvasir.router.policy.builtin;

import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The selection policies of the class path at one moment, as the context class loader of the thread
 * sees it, then as the router's own does: a thread of a pool may have any context. A provider that
 * fails is left out, with all of its policies; the others count. Owned by the thread that looks.
 */
final class ProvidedPolicies {
    private static final Logger LOG = LoggerFactory.getLogger(ProvidedPolicies.class);

    /** What is in the log: a provider is asked anew each time that a policy is looked for. */
    private static final Set<String> LOGGED = ConcurrentHashMap.newKeySet();

    private final List<SelectionPolicy> policies = new ArrayList<>();
    private final Set<String> failures = new LinkedHashSet<>(); // both loaders may meet one

    private ProvidedPolicies() {}

    /** Asks each provider. */
    static ProvidedPolicies look() {
        final ProvidedPolicies found = new ProvidedPolicies();
        final Set<Class<?>> asked = new HashSet<>();
        found.look(ServiceLoader.load(SelectionPolicyProvider.class), asked);
        found.look(
                ServiceLoader.load(
                        SelectionPolicyProvider.class,
                        SelectionPolicyProvider.class.getClassLoader()),
                asked);
        return found;
    }

    private void look(ServiceLoader<SelectionPolicyProvider> loader, Set<Class<?>> asked) {
        final Iterator<ServiceLoader.Provider<SelectionPolicyProvider>> providers =
                loader.stream().iterator();
        String before = "";
        while (true) {
            try {
                if (!providers.hasNext()) {
                    return;
                }
                final ServiceLoader.Provider<SelectionPolicyProvider> provider = providers.next();
                if (asked.add(provider.type())) {
                    add(provider.get());
                }
            } catch (ServiceConfigurationError | LinkageError e) {
                final String what = what(e);
                if (what.equals(before)) {
                    return; // the loader gets no further
                }
                before = what;
                final Throwable cause = e.getCause();
                failed(what, cause == null ? "" : cause.toString(), e);
            }
        }
    }

    private void add(SelectionPolicyProvider provider) {
        final String name = provider.getClass().getName();
        try {
            final Iterable<SelectionPolicy> provided = provider.policies();
            if (provided == null) {
                failed(name, "policies() is null", null);
                return;
            }
            final List<SelectionPolicy> all = new ArrayList<>();
            for (SelectionPolicy each : provided) {
                if (each == null) {
                    failed(name, "policies() has an element that is null", null);
                    return;
                }
                all.add(each);
            }
            policies.addAll(all);
        } catch (Exception | LinkageError | AssertionError | StackOverflowError e) {
            failed(name, e.toString(), e);
        }
    }

    /** What the loader says of a provider, without the name of the service. */
    private static String what(Error e) {
        final String service = SelectionPolicyProvider.class.getName() + ": ";
        final String said = e instanceof ServiceConfigurationError ? e.getMessage() : e.toString();
        return said.startsWith(service) ? said.substring(service.length()) : said;
    }

    private void failed(String what, String whyOrEmpty, Throwable causeOrNull) {
        final String text = whyOrEmpty.isEmpty() ? what : what + ": " + whyOrEmpty;
        failures.add(text);
        if (LOGGED.add(what)) {
            LOG.warn(
                    "selection policies of a provider on the class path are left out: {}",
                    text,
                    causeOrNull);
        }
    }

    /** Those of the providers that did not fail, in the order of the class path. */
    List<SelectionPolicy> policies() {
        return policies;
    }

    /** Which providers failed, and why; empty where none did. */
    Set<String> failures() {
        return failures;
    }
}
