package io.kvasir.gateway.trace;

import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.SecretFile;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.Supplier;

/**
 * The headers that a file has whenever they are sent: {@code name=value}, one a line. What cannot
 * be read leaves those before, and a line in the log for each reason. Thread-safe.
 */
final class FollowedHeaders implements Supplier<Map<String, String>> {
    private static final Logger LOG = LoggerFactory.getLogger(FollowedHeaders.class);

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
            CollectorHeaders.put(headers, line.from(), line.secret().value());
        }
        return headers;
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
