/**
 * Streams on which an index stalls that is fast on ordinary ones: each {@link
 * io.kvasir.opstreams.cliffs.Cliff} is one situation of production, written as an op stream with
 * the answers that are exact.
 */
package io.kvasir.opstreams.cliffs;
