/**
 * The router's public API: decide which worker serves a prompt, book its load, release it.
 *
 * <p>{@link io.kvasir.router.KvRouter#select} is pure; {@link io.kvasir.router.KvRouter#reserve}
 * also books the load and answers a {@link io.kvasir.router.Lease}. Both run on the caller's
 * thread, take no lock and never wait. {@link io.kvasir.router.Decision} says why a worker was
 * chosen.
 *
 * <p>The way of a request, each class calling those below it only:
 *
 * <ol>
 *   <li>{@code RouteRequest} hashes the prompt's blocks.
 *   <li>{@code PromptMatcher} reads the set of workers of {@code WorkerRegistry}, finds in the
 *       index, among predicted prefixes and among running requests what each worker has of the
 *       prompt, and copies the loads: all that is known is in a {@code Selection} then.
 *   <li>{@code WorkerSelector} chooses: one of the {@code Candidates} by mode, the cheapest by
 *       {@code CandidateCosts}, or the one that a {@code SelectionPolicy} says, which {@code
 *       GuardedPolicy} asks and which sees the candidates through {@code CandidateCursor}. {@code
 *       CandidateCosts} computes groups of 64 slots one by one where a match has listed a slot of
 *       theirs ({@code ListedCosts}), else by the sets of slots that hold the same ({@code
 *       SharedCosts}).
 *   <li>{@code Bookings} puts the load on the board and the booking into the booking pipeline, and
 *       the {@code Lease} takes its number. The lease carries the booking on, and ends it; {@code
 *       HeldBooking} ends it when the lease is collected unclosed.
 *   <li>{@code Decision} reads the selection, for the caller.
 * </ol>
 *
 * <p>Threads: requests, decisions, selections and leases belong to one thread at a time; all other
 * classes are for any thread. {@code WorkerRegistry} has the only lock, for registrations. {@code
 * RouterParts} has the memory, which one gate guards, and the two writer threads, which alone write
 * index and bookings. A {@code RouterTicker} has time pass, another one has {@code PromptWatch}
 * look.
 *
 * <p>Below it, and knowing nothing of this package: {@code settings} (the table of what can be set;
 * {@code RouterConfig} is one router's values), {@code policy} (what embedders may decide, and
 * {@code policy.builtin}), {@code load} (what engines report of theirs), {@code session}, {@code
 * journal}, {@code replica}, {@code spi} and {@code state}, {@code disagg}. Above it: {@code
 * client}, {@code queue}.
 */
package io.kvasir.router;
