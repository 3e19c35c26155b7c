/**
 * The transport where NIXL is absent: copies through shared memory between processes of one
 * machine, and inside one process.
 *
 * <pre>
 *   LoopbackTransport ---&gt; SharedFolder: /dev/shm or a folder of files named after their process
 *       |  own                            |
 *       |   +-- SharedMemory              |  regions that peers map
 *       |   +-- Inbox &lt;--- InboxSender    |  messages, one lane a sender (InboxDescriptor)
 *       |  peers: LoopbackPeer            |  of LoopbackMetadata, lost when HostProcess says so
 *       +-- CopyRequest between two DescriptorLists, a chunk a poll
 * </pre>
 *
 * <p>A transport belongs to one thread at a time. What processes share is written with the order
 * that {@code OrderedMemory}'s suffixes name; {@code InboxDescriptor} says which side writes what.
 *
 * <p>Knows {@code transport} and {@code memory}.
 */
package io.kvasir.nixl.loopback;
