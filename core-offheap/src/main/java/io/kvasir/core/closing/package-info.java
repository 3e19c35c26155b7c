/** Ending things whole: all of their parts, and in interrupted threads. Knows no other package. */
package io.kvasir.core.closing;
