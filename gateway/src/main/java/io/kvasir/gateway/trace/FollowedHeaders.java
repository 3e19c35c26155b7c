package io.kvasir.gateway.trace;

import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.SecretFile;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * The headers that a file has whenever they are sent: {@code name=value}, one a line. What cannot
 * be read leaves those before, and a line in the log for each reason. Thread-safe.
 */
final class FollowedHeaders implements Supplier<Map<String, String>> {
    private static final Logger LOG = LoggerFactory.getLogger(FollowedHeaders.class);
    private static final Pattern NAME = Pattern.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+");

    private final String option;
    private final Path file;
    private Map<String, String> last; // guarded by this
    private String problem = ""; // that was logged last; guarded by this

    /**
     * Reads the file.
     *
     * @throws GatewayException with option, file and what is wrong, without any value
     */
    FollowedHeaders(String option, Path file) {
        this.option = option;
        this.file = file;
        last = read();
    }

    private Map<String, String> read() {
        final Map<String, String> headers = new LinkedHashMap<>();
        for (SecretFile.Line line : SecretFile.tokens(option, file)) {
            final String text = line.secret().value();
            final int equals = text.indexOf('=');
            final String name = equals < 0 ? "" : text.substring(0, equals).strip();
            final String value = text.substring(equals + 1).strip();
            if (!NAME.matcher(name).matches() || !isValue(value)) {
                throw new GatewayException(
                        line.from() + ": it must be name=value of a header, in ASCII", null);
            }
            headers.put(name, value);
        }
        return headers;
    }

    private static boolean isValue(String value) {
        return value.chars().allMatch(c -> c >= ' ' && c <= '~');
    }

    @Override
    public synchronized Map<String, String> get() {
        try {
            last = read();
            problem = "";
        } catch (GatewayException e) {
            if (!problem.equals(e.getMessage())) { // spans are sent again and again
                problem = e.getMessage();
                LOG.warn("{}; what was read before stays", problem);
            }
        }
        return last;
    }
}
