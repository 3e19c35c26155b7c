package io.kvasir.gateway.config;

import io.kvasir.registry.Authorities;
import io.kvasir.registry.etcd.EtcdOptions;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.function.Supplier;

/**
 * Where etcd is, and by which files one is known there, of a gateway or a command.
 *
 * @param option what the options begin with that name the values, for messages, such as {@code
 *     --etcd-}: {@code user}, {@code password-file} and {@code trust-store} follow
 * @param endpoints of the members
 * @param user null where etcd asks for none
 * @param password file whose first line is the user's; null without one
 * @param trustStore PEM of the authorities; null for those of the JVM
 */
public record EtcdAccess(
        String option, List<URI> endpoints, String user, Path password, Path trustStore) {
    private static final Logger LOG = LoggerFactory.getLogger(EtcdAccess.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    /**
     * Connects to nothing. Each connection and login goes by what the files have then; what cannot
     * be read then is logged, and what was read before stays.
     *
     * @param ttl how long a key outlives its last renewal
     * @throws IllegalArgumentException if a file cannot be read or a value cannot be
     */
    public EtcdOptions options(Duration ttl) {
        check();
        return new EtcdOptions(
                endpoints,
                ttl,
                TIMEOUT,
                user == null
                        ? null
                        : new EtcdOptions.Login(
                                user, new FollowedPassword(option + "password-file", password)),
                Authorities.followedOrNull(option + "trust-store", trustStore, EtcdAccess::stays));
    }

    /**
     * Checks addresses and user, and reads nothing.
     *
     * @throws IllegalArgumentException if one cannot be; the message names options
     */
    public void check() {
        final String login = option + "user and " + option + "password-file";
        if ((user == null) != (password == null)) {
            throw new IllegalArgumentException(login + " go together");
        }
        endpoints.forEach(endpoint -> EtcdOptions.check(endpoint, login));
    }

    /** A member of {@code discovery-etcd-endpoints}. */
    static URI endpoint(String text) {
        final URI endpoint = URI.create(text);
        EtcdOptions.check(endpoint, "discovery-etcd-user and discovery-etcd-password-file");
        return endpoint;
    }

    private static void stays(String problem) {
        LOG.warn("{}; what was read before stays", problem);
    }

    /** The password that its file has at each login; what cannot be read leaves the one before. */
    private static final class FollowedPassword implements Supplier<String> {
        private final String option;
        private final Path file;
        private Secret last; // guarded by this
        private String problem = ""; // that was logged last; guarded by this

        FollowedPassword(String option, Path file) {
            this.option = option;
            this.file = file;
            last = read();
        }

        private Secret read() {
            return SecretFile.password(option, file);
        }

        @Override
        public synchronized String get() {
            try {
                last = read();
                problem = "";
            } catch (GatewayException e) {
                if (!problem.equals(e.getMessage())) { // logins are tried again and again
                    problem = e.getMessage();
                    stays(problem);
                }
            }
            return last.value();
        }
    }
}
