package io.kvasir.services.indexer;

import io.kvasir.services.http.Call;
import io.kvasir.services.http.Endpoint;
import io.kvasir.services.http.Reply;
import io.kvasir.services.http.ServiceException;

import java.util.concurrent.Semaphore;

/** Gives the dump of all indexes of a registry; {@value #AT_ONCE} at once. */
public final class DumpEndpoint implements Endpoint {
    private static final int AT_ONCE = 2;

    private final IndexRegistry registry;
    private final Semaphore dumps = new Semaphore(AT_ONCE);

    /**
     * Makes the endpoint.
     *
     * @param registry whose indexes are dumped
     */
    public DumpEndpoint(IndexRegistry registry) {
        this.registry = registry;
    }

    @Override
    public Reply answer(Call call) throws ServiceException {
        if (!dumps.tryAcquire()) {
            throw ServiceException.noRoom("other dumps are under way");
        }
        return Reply.json(
                out -> {
                    try {
                        DumpWriter.write(registry.groups(), out);
                    } finally {
                        dumps.release();
                    }
                });
    }
}
