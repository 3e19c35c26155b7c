/**
 * A router and the engines' clients as one call: {@link io.kvasir.router.client.RoutedClient} books
 * a worker, has an {@link io.kvasir.router.client.EngineClient} ask it, passes the answer on and
 * releases the booking when the answer ends, fails or is cancelled. For embedders; stands on the
 * router's public API alone, and nothing stands on it.
 *
 * <p>Any thread; the rules of {@link java.util.concurrent.Flow} hold for each answer.
 */
package io.kvasir.router.client;
