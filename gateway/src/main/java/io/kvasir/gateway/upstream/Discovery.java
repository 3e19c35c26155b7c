package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayException;

import java.time.Duration;
import java.util.List;

/**
 * A source of workers: which server has which model in which role. It publishes its whole view or
 * single changes of it, from any thread; a listener drains what is missing from a later view. A
 * source that fails keeps the view that it published last.
 */
public interface Discovery extends AutoCloseable {
    /** Takes what a source says. Refusals concern single workers and are its own business. */
    interface Listener {
        /** All that the source knows: everything else that it published before is no more. */
        void view(List<DiscoveredWorker> workers);

        /**
         * One worker is there, or is another one now.
         *
         * @return false if it is known already
         * @throws IllegalArgumentException if it cannot be used; the message says why
         */
        boolean added(DiscoveredWorker worker);

        /**
         * One worker is no more.
         *
         * @return false if there is none of that name
         */
        boolean removed(String name);

        /**
         * One worker gets no new request any more, or does again; the requests that it has go on.
         * For one of the last view that is not registered, it holds when it is. Nothing happens if
         * there is none of that name.
         */
        void draining(String name, boolean draining);

        /** The source cannot say what is there; its former view holds. Called once a cause. */
        void failed(String cause);

        /**
         * The source can say again what is there, after it could not.
         *
         * @param away for how long it could not
         */
        default void recovered(Duration away) {}

        /**
         * Something that the source holds cannot be used: the view leaves it out, or has it as it
         * was before, which the cause says. Called once a cause, before that view.
         */
        default void refused(String cause) {
            failed(cause);
        }
    }

    /** Name of the source, for logs and metrics. */
    String source();

    /**
     * Publishes what is known and, from then on, changes.
     *
     * @throws GatewayException if nothing can be known, by a fault of the configuration
     */
    void start(Listener listener);

    /** Reads the source again, now. */
    void reload();

    /** Publishes nothing any more. */
    @Override
    void close();
}
