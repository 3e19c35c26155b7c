/**
 * Sessions and the workers that had their last requests, as numbers: a session is a hash, a worker
 * the tenant of a slot. Of the router's own rooms only. Whether a session's worker may still be
 * chosen, and whether the choice stays with it, is the router's to say ({@code Selection}, {@code
 * WorkerSelector}).
 */
package io.kvasir.router.session;
