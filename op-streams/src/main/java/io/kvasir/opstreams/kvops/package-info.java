/**
 * Op streams in the KVOPS format and their replay: an index is fed what engines announced and asked
 * what a router asks, every answer is checked against the stream, and the costs are measured.
 *
 * <p>{@link io.kvasir.opstreams.kvops.KvopsFile} reads a file, {@link
 * io.kvasir.opstreams.kvops.KvopsStream} holds it decoded, {@link
 * io.kvasir.opstreams.kvops.BlockIndex} is what is measured, {@link
 * io.kvasir.opstreams.kvops.Indexes} lists what can be. {@link
 * io.kvasir.opstreams.kvops.KvopsBench} runs fresh processes and gives medians.
 */
package io.kvasir.opstreams.kvops;
