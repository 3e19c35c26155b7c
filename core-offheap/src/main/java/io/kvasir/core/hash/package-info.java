/** Hashes of token blocks and of prefixes, equal to those of other routers and publishers. */
package io.kvasir.core.hash;
