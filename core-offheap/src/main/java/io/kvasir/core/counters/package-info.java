/**
 * Counters and distinct errors in a mapped file that another process reads while they change, and
 * after the writer has died.
 *
 * <p>The sections of the file have the layouts of Agrona's {@code CountersManager} and {@code
 * DistinctErrorLog}, so that its readers understand them; they are written through {@link
 * io.kvasir.core.memory.OffHeap}, as Agrona's buffers need the JDK opened by a flag. One thread
 * allocates and sets counters, any thread records errors, any process reads.
 */
package io.kvasir.core.counters;
