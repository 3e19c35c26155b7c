/**
 * The booking ring and its writer: reservations, steps and ends of requests into the table of
 * active requests.
 *
 * <p>A <em>booking</em> is an entry of the booking table, found by its number; a <em>booking
 * command</em> is the ring's record about it. A booking that begins and ends before the writer sees
 * it costs the writer nothing. Hashes travel in a pool of their own.
 *
 * <p>Threads: {@code kvasir-booking-writer} is the only one that writes active requests and
 * predicted prefixes; callers publish from any thread.
 */
package io.kvasir.pipeline.booking;
