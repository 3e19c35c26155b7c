/**
 * Memory outside the Java heap: bounded ranges of it, chained entries, lists. Nothing above this
 * package holds a memory segment.
 */
package io.kvasir.core.memory;
