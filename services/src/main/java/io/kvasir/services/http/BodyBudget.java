package io.kvasir.services.http;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.server.BodyReader;

import java.util.concurrent.atomic.AtomicLong;

/** Bytes of request bodies that may be in memory at once. Thread-safe. */
final class BodyBudget {
    private final long most;
    private final AtomicLong used = new AtomicLong();

    BodyBudget(long most) {
        this.most = most;
    }

    /** One request's share; its bytes are taken by one thread. */
    BodyReader.Budget share() {
        return new BodyReader.Budget() {
            private long taken;

            @Override
            public void expect(long count) throws ApiException {
                if (used.get() + count > most) {
                    throw full();
                }
            }

            @Override
            public void take(long count) throws ApiException {
                if (used.addAndGet(count) > most) {
                    used.addAndGet(-count);
                    throw full();
                }
                taken += count;
            }

            @Override
            public void giveBack() {
                used.addAndGet(-taken);
                taken = 0;
            }
        };
    }

    private ApiException full() {
        return ApiException.overloaded(
                "too many bytes of request bodies are in memory at this moment", "most=" + most);
    }
}
