/**
 * Peer records from peer to peer over ZMQ, without a server: each end answers for its own records
 * and asks the peers that it was given. Threads of its own; listeners are called on them.
 *
 * <p>Knows {@code exchange} and JeroMQ.
 */
package io.kvasir.nixl.exchange.zmq;
