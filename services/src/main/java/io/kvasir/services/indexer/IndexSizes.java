package io.kvasir.services.indexer;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;

/** Sizes of a service's indexes. */
public final class IndexSizes {
    private IndexSizes() {}

    /**
     * Sizes as a router's index has them.
     *
     * @param maxWorkers ranks
     * @param indexBytes memory that one may grow to; 0 = a tenth of the machine's
     * @throws IllegalArgumentException if a size is out of range
     */
    public static PrefixIndexConfig of(int maxWorkers, long indexBytes) {
        final Settings.Builder settings =
                Settings.builder(RouterSettings.TABLE).set(RouterSettings.MAX_WORKERS, maxWorkers);
        if (indexBytes > 0) {
            settings.set(RouterSettings.INDEX_BYTES, indexBytes);
        }
        return RouterConfig.index(settings.build());
    }
}
