package io.kvasir.router.client;

import java.util.concurrent.Flow;

/** The subscription of an answer that does not come. */
enum NoSubscription implements Flow.Subscription {
    INSTANCE;

    @Override
    public void request(long parts) {}

    @Override
    public void cancel() {}
}
