package io.kvasir.cli.admin;

import io.kvasir.gateway.config.Secret;

/**
 * What a caller of an admin port presents.
 *
 * @param secret the token
 * @param from option, file or variable that has it, for messages
 */
public record AdminToken(Secret secret, String from) {
    /** Environment variable that has one, where no option does. */
    public static final String VARIABLE = "KVASIR_ADMIN_TOKEN";

    private static final int DELETE = 0x7f;
    private static final int MOST_OF_HEADERS = 0xff;

    /** Whether a header can carry it; a gateway refuses tokens with blanks. */
    public boolean isPresentable() {
        return secret.value().chars().allMatch(c -> c > ' ' && c != DELETE && c <= MOST_OF_HEADERS);
    }
}
