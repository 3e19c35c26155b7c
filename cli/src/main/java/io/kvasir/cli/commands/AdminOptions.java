package io.kvasir.cli.commands;

import io.kvasir.cli.admin.AdminPort;
import io.kvasir.cli.admin.AdminToken;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.SecretFile;
import io.kvasir.router.settings.Setting;

import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Option;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;

/** Which gateway a command asks, and how. */
final class AdminOptions {
    private static final int MOST_SECONDS = 3_600;

    @Option(
            names = "--url",
            paramLabel = "URL",
            converter = Converters.Url.class,
            defaultValue = "http://127.0.0.1:9000",
            description = "Admin port of the gateway. Default: ${DEFAULT-VALUE}.")
    private URI url;

    @ArgGroup private Token token;

    @Option(
            names = "--timeout-s",
            paramLabel = "S",
            defaultValue = "10",
            description = "How long each answer is waited for. Default: ${DEFAULT-VALUE}.")
    private int seconds;

    /** The admin token; in one way at most. */
    static final class Token {
        @Option(
                names = "--token",
                paramLabel = "TOKEN",
                description =
                        "The gateway's admin token. Other users of the machine may see it: prefer"
                                + " the file, or the variable "
                                + AdminToken.VARIABLE
                                + ".")
        private String text;

        @Option(
                names = "--token-file",
                paramLabel = "FILE",
                description = "File whose first line is the gateway's admin token.")
        private Path file;

        /** What is given, or what the variable has; null where neither is. */
        static AdminToken orNull(Token givenOrNull) {
            if (givenOrNull == null) {
                final String text = System.getenv(AdminToken.VARIABLE);
                return text == null ? null : new AdminToken(new Secret(text), AdminToken.VARIABLE);
            }
            if (givenOrNull.text != null) {
                return new AdminToken(new Secret(givenOrNull.text), "--token");
            }
            final SecretFile.Line line = SecretFile.token("--token-file", givenOrNull.file);
            return new AdminToken(line.secret(), line.from());
        }
    }

    /** The admin port; to be closed. */
    AdminPort port(CommonOptions common) {
        if (url.getRawUserInfo() != null) {
            throw common.wrong(
                    "--url "
                            + Setting.withoutPasswords(url.toString())
                            + " must have no user: the token is for --token-file");
        }
        common.http("--url", url);
        if (url.getRawQuery() != null || url.getRawFragment() != null) {
            throw common.wrong(
                    "--url "
                            + url
                            + " must be http://host:port or https://host:port, without a query");
        }
        common.within("--timeout-s", seconds, 1, MOST_SECONDS);
        final AdminToken tokenOrNull = Token.orNull(token);
        if (tokenOrNull != null && !tokenOrNull.isPresentable()) {
            throw common.wrong(
                    tokenOrNull.from()
                            + ": the token has a blank, a line end or another character that no"
                            + " header can carry");
        }
        return new AdminPort(url, tokenOrNull, Duration.ofSeconds(seconds));
    }
}
