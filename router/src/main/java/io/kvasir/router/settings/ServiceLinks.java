package io.kvasir.router.settings;

import java.util.regex.Pattern;

/**
 * Variables that Kubernetes gives every pod for each service of its namespace. For services whose
 * name begins with {@code kvasir} they begin as the variables of settings do.
 */
public final class ServiceLinks {
    private static final Pattern NAME =
            Pattern.compile(
                    ".+_SERVICE_(HOST|PORT(_.+)?)"
                            + "|.+_PORT_\\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?");
    private static final Pattern URL = Pattern.compile("(tcp|udp|sctp)://.*");

    private ServiceLinks() {}

    /**
     * Whether a variable is one.
     *
     * @param variable its name
     * @param text its value, which alone tells {@code KVASIR_PORT} of a service from a port
     */
    public static boolean isOne(String variable, String text) {
        return NAME.matcher(variable).matches()
                || (variable.endsWith("_PORT") && URL.matcher(text).matches());
    }
}
