/**
 * The prefix index as a service: engines' events in, questions over HTTP out.
 *
 * <p>An <em>index group</em> is the index of one model and routing group. An <em>instance</em> is
 * an engine with one listener for each data-parallel rank; a <em>tenant</em> is one rank with its
 * worker slot in the index of its group.
 *
 * <p>Threads: requests, each its own; per group one index writer and one or two pollers. Changes of
 * the registry are ordered by its lock, questions take none.
 */
package io.kvasir.services.indexer;
