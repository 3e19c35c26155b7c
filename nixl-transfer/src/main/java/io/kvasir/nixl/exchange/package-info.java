/**
 * How ends of KV transfers find each other: what an end publishes of itself ({@link
 * io.kvasir.nixl.exchange.PeerRecord}) and the seam that carries it ({@link
 * io.kvasir.nixl.exchange.MetadataExchange}).
 *
 * <pre>
 *   owner                            MetadataExchange                       peer
 *   TransferEngine --PeerRecord-&gt; publish ... watch, find --PeerRecord-&gt; link.LinkManager
 *                                 zmq.SideChannelExchange (peer to peer)
 *                                 etcd.EtcdExchange
 *                                 io.kvasir.nats.NatsExchange
 * </pre>
 *
 * <p>{@link io.kvasir.nixl.exchange.PeerDirectory} and {@link
 * io.kvasir.nixl.exchange.PublishedRecords} are what every exchange keeps: the newest record of
 * each peer, and what this end has published. Nothing here runs on the thread of a transfer engine.
 *
 * <p>Knows {@code memory}.
 */
package io.kvasir.nixl.exchange;
