/**
 * vLLM's NIXL connector from the other side of the wire: enough of its protocol that a JVM can
 * pull, keep alive and release the blocks of a vLLM prefill server, or stand in for one.
 *
 * <pre>
 *   prefill answer (kv_transfer_params)      io.kvasir.protocol.handoff.KvTransferParams
 *        |  host, port, engine
 *        v
 *   handshake over ZMQ                       VllmHandshake  &lt;---&gt;  VllmSideChannel
 *        |  VllmAgent: agent metadata, regions, clock
 *        v
 *   io.kvasir.nixl.transport.KvTransport      VllmPrefillPeer: connect, hold, pull, heartbeat, release
 *        |  READ + notification              VllmBlocks, PrefillLease, VllmNotification
 *        v
 *   blocks here, freed there
 * </pre>
 *
 * <p>Where blocks are only kept alive and freed, VllmPrefillReleaser does with the notifications.
 *
 * <p>Spoken: protocol 14 of the connector (vLLM 0.32), pull mode, any number of tensor parallel
 * ranks on both sides, equal block sizes. What is beyond that is refused by name, never read
 * wrongly.
 *
 * <p>Knows {@code transport}, {@code memory}, engine-protocol and JeroMQ.
 */
package io.kvasir.nixl.vllm;
