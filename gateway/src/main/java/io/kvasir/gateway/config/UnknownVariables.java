package io.kvasir.gateway.config;

import io.kvasir.router.settings.ServiceLinks;
import io.kvasir.router.settings.Setting;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * Environment variables that begin as those of settings do and are none: mostly mistyped. They are
 * warned of and never refused, for a pod does not choose all of its variables.
 */
public final class UnknownVariables {
    /** What the launcher, other commands, tests and tools of the tree read. */
    private static final Set<String> OTHERS =
            Set.of(
                    "KVASIR_ADMIN_TOKEN",
                    "KVASIR_CUDA_INCLUDE",
                    "KVASIR_CUDA_LIBRARY",
                    "KVASIR_DRY_RUN",
                    "KVASIR_GPU_CLASSES",
                    "KVASIR_GPU_LIMIT_S",
                    "KVASIR_JAVA",
                    "KVASIR_JDK_DIRS",
                    "KVASIR_KVOPS_STREAMS",
                    "KVASIR_MVN",
                    "KVASIR_NATS_STORE_PASSWORD",
                    "KVASIR_NIXL_LIBRARY",
                    "KVASIR_NIXL_VENV",
                    "KVASIR_OPTS",
                    "KVASIR_PEER",
                    "KVASIR_PYTHON",
                    "KVASIR_SGLANG",
                    "KVASIR_VLLM");

    private UnknownVariables() {}

    /**
     * What to say of them.
     *
     * @param environment such as {@link System#getenv()}
     * @return a line for each, by name; values are left out, for they may be secrets
     */
    public static List<String> warnings(Map<String, String> environment) {
        return environment.entrySet().stream()
                .filter(each -> isUnknown(each.getKey(), each.getValue()))
                .map(Map.Entry::getKey)
                .sorted()
                .map(
                        name ->
                                name
                                        + " has no effect: no setting has this variable; the"
                                        + " nearest is "
                                        + nearest(name))
                .toList();
    }

    private static boolean isUnknown(String name, String text) {
        return name.startsWith(Setting.VARIABLE_PREFIX)
                && !text.isBlank()
                && !OTHERS.contains(name)
                && !ServiceLinks.isOne(name, text)
                && GatewaySettings.TABLE.rows().stream()
                        .noneMatch(
                                row ->
                                        row.variables().contains(name)
                                                || row.formerVariables().contains(name));
    }

    private static String nearest(String name) {
        final String setting =
                name.substring(Setting.VARIABLE_PREFIX.length())
                        .toLowerCase(Locale.ROOT)
                        .replace('_', '-');
        return Setting.variableOf(GatewaySettings.TABLE.nearest(setting));
    }
}
