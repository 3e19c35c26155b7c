package io.kvasir.host;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.InstanceId;
import io.kvasir.registry.Registrar;
import io.kvasir.registry.RegistryException;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;

/** Logs what becomes of a host's registration in its store. Any thread. */
final class RenewalLog implements Registrar.Listener {
    private static final Logger LOG = LoggerFactory.getLogger(RenewalLog.class);

    private final InstanceId id;

    RenewalLog(InstanceId id) {
        this.id = id;
    }

    @Override
    public void notRenewed(RegistryException cause) {
        LOG.warn("{} is not renewed: {}", id, FailureText.of(cause));
    }

    @Override
    public void lapsed(Duration ttl) {
        LOG.warn(
                "{} has lapsed: not renewed for {} ms; gateways drop it until it is",
                id,
                ttl.toMillis());
    }

    @Override
    public void renewed(boolean lapsed) {
        LOG.info("{} is renewed{}", id, lapsed ? ", after it had lapsed" : "");
    }

    @Override
    public void notRemoved(InstanceId removed, RegistryException cause) {
        LOG.warn("{} is not removed, and ends with its lease: {}", removed, FailureText.of(cause));
    }
}
