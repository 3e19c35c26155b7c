/**
 * The plainer way to do the same thing, to say what the chosen one gains. Not part of the product.
 */
package io.kvasir.opstreams.alternatives;
