package io.kvasir.opstreams.kvops;

/**
 * What one pass over a stream took.
 *
 * @param applyNs CPU time of an event on average, 0 without events
 * @param queryNs time of a query on average, 0 without queries
 */
record PassCost(double applyNs, double queryNs) {}
