/**
 * What the gateway costs by itself: a gateway in a process of its own, engines that answer at once,
 * and clients that ask at fixed times.
 */
package io.kvasir.bench.gateway;
