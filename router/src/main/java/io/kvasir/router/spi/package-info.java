/** Seams for what a router needs and its embedder brings, without an implementation. */
package io.kvasir.router.spi;
