/**
 * What several processes of one host share, in files that each of them maps: tokens of prompts
 * ({@link io.kvasir.chronicle.ChroniclePromptMemo}), and beside the snapshots of a {@link
 * io.kvasir.chronicle.ChronicleStateStore} the workers, watermarks and snapshots of all routers
 * ({@link io.kvasir.chronicle.HostState}).
 *
 * <p>Needs the flags of the JVM that {@code docs/operations/flags.md} lists; without them opening
 * fails with their names. Nothing else of Kvasir needs them, or this room.
 */
package io.kvasir.chronicle;
