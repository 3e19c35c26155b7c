package io.kvasir.gateway;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.router.RouterConfig;

/** Whether the indexes of all models have room on this machine. Stateless. */
final class IndexMemory {
    private IndexMemory() {}

    /**
     * Checks that the indexes of several models, each as large as it may grow, fit into memory
     * together. That of one model may be set to more, as ever: its memory is taken as it is needed.
     *
     * @throws GatewayException if not; the message has the sum, the limit and the knobs
     * @throws IllegalArgumentException if the limit of this process is no number, whatever the
     *     number of models
     */
    static void check(GatewayConfig config) {
        check(config, RouterConfig.memoryBytes());
    }

    /**
     * @param limitBytes memory of the machine; 0 if that is not known
     */
    static void check(GatewayConfig config, double limitBytes) {
        final int models = config.models().size();
        if (models == 1 || limitBytes == 0) {
            return;
        }
        long sumBytes = 0;
        for (GatewayConfig model : config.models()) {
            sumBytes +=
                    RouterConfig.keepsIndex(model.settings())
                            ? RouterConfig.index(model.settings()).budgetBytes()
                            : 0;
        }
        if (sumBytes > limitBytes) {
            throw new GatewayException(
                    "the indexes of "
                            + models
                            + " models may grow to "
                            + sumBytes
                            + " bytes together, and there are "
                            + (long) limitBytes
                            + "; index-memory-share, max-blocks and index-bytes hold for each"
                            + " model: lower them, or serve fewer models",
                    null);
        }
    }
}
