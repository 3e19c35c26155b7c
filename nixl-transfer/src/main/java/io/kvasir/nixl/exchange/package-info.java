/**
 * How ends of KV transfers find each other, and keep links to each other.
 *
 * <pre>
 *   owner                            MetadataExchange                       peer
 *   TransferEngine --AgentCard--&gt; publish ... watch, find --AgentCard--&gt; LinkManager
 *                                 SideChannelExchange (peer to peer)         |  connect, prepare, again after a loss
 *                                 EtcdExchange                               v
 *                                 io.kvasir.nats.NatsExchange             KvLink
 * </pre>
 *
 * <p>Nothing here runs on the thread of a transfer engine, but for the short calls that a {@link
 * io.kvasir.nixl.exchange.LinkManager} hands to it.
 */
package io.kvasir.nixl.exchange;
