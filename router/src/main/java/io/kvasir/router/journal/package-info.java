/**
 * The journal of decisions: why each of the last requests went where it did, in records of one size
 * outside the heap or in a mapped file, which any process may read while the router writes.
 */
package io.kvasir.router.journal;
