/**
 * The router's public API: decide which worker serves a prompt, book its load, release it.
 *
 * <p>{@link io.kvasir.router.KvRouter#select} is pure; {@link io.kvasir.router.KvRouter#reserve}
 * also books the load and answers a {@link io.kvasir.router.Lease}. Both run on the caller's
 * thread, take no lock and never wait. {@link io.kvasir.router.Decision} says why a worker was
 * chosen.
 */
package io.kvasir.router;
