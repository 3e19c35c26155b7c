/**
 * What a router needs of others and takes from whoever embeds it: seams, without an implementation.
 */
package io.kvasir.router.spi;
