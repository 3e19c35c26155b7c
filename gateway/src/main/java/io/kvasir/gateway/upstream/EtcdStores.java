package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.Secret;
import io.kvasir.gateway.config.SecretFile;
import io.kvasir.registry.Authorities;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.etcd.EtcdOptions;
import io.kvasir.registry.etcd.EtcdStore;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Supplier;

/** How a gateway reaches etcd, for whatever it uses it. Stateless. */
public final class EtcdStores {
    private static final Logger LOG = LoggerFactory.getLogger(EtcdStores.class);
    private static final Duration TIMEOUT = Duration.ofSeconds(5);

    private EtcdStores() {}

    /**
     * By the settings that begin with {@code discovery-etcd-}; connects to nothing. Each connection
     * and login goes by what the files have then.
     *
     * @param ttl how long a key outlives its last renewal
     * @param prefix of all keys
     * @throws IllegalArgumentException if a file cannot be read or a value cannot be
     */
    public static LeasedStore open(GatewayConfig config, Duration ttl, String prefix) {
        return new EtcdStore(options(config, ttl), prefix);
    }

    /**
     * Reads the files of {@link #open}, where members of etcd are named.
     *
     * @throws IllegalArgumentException if one cannot be read or a value cannot be
     */
    public static void check(GatewayConfig config) {
        if (!config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS).isEmpty()) {
            options(config, config.get(GatewaySettings.DISCOVERY_TTL));
        }
    }

    private static EtcdOptions options(GatewayConfig config, Duration ttl) {
        final String user = config.get(GatewaySettings.DISCOVERY_ETCD_USER);
        final Path password = config.get(GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE);
        if ((user == null) != (password == null)) {
            throw new IllegalArgumentException(
                    "discovery-etcd-user and discovery-etcd-password-file go together");
        }
        return new EtcdOptions(
                config.get(GatewaySettings.DISCOVERY_ETCD_ENDPOINTS),
                ttl,
                TIMEOUT,
                user == null ? null : new EtcdOptions.Login(user, new FollowedPassword(password)),
                Authorities.followedOrNull(
                        GatewaySettings.DISCOVERY_ETCD_TRUST_STORE.name(),
                        config.get(GatewaySettings.DISCOVERY_ETCD_TRUST_STORE),
                        EtcdStores::stays));
    }

    private static void stays(String problem) {
        LOG.warn("{}; what was read before stays", problem);
    }

    /** The password that its file has at each login; what cannot be read leaves the one before. */
    private static final class FollowedPassword implements Supplier<String> {
        private final Path file;
        private Secret last; // guarded by this
        private String problem = ""; // that was logged last; guarded by this

        FollowedPassword(Path file) {
            this.file = file;
            last = read();
        }

        private Secret read() {
            return SecretFile.password(GatewaySettings.DISCOVERY_ETCD_PASSWORD_FILE.name(), file);
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
