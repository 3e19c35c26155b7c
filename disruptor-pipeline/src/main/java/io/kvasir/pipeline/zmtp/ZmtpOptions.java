package io.kvasir.pipeline.zmtp;

/**
 * What holds for a connection.
 *
 * @param type our side
 * @param maxMessageBytes most bytes of a message
 * @param handshakeNs longest time from the begin of connecting to the end of the handshake
 * @param budget memory of incomplete messages of all connections
 */
public record ZmtpOptions(
        SocketType type, long maxMessageBytes, long handshakeNs, ByteBudget budget) {}
