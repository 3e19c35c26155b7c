package io.kvasir.pipeline.source;

import io.kvasir.pipeline.zmtp.Connector;
import io.kvasir.pipeline.zmtp.Endpoint;
import io.kvasir.pipeline.zmtp.ZmtpMessage;

/** The feed of a publisher that we connect to: one connection, kept up. */
final class ConnectedFeed extends EventFeed implements Connector.Listener, EventFeed.Peer {
    private final Endpoint endpoint;
    private final Connector connector;
    private String failure; // of the last try to connect, null before one and while connected

    ConnectedFeed(SourceLane lane, Endpoint endpoint) {
        super(lane);
        this.endpoint = endpoint;
        connector = lane.connector(endpoint, lane.subscriberOptions(), this);
    }

    @Override
    String address() {
        return endpoint.text();
    }

    void start() {
        connector.start();
    }

    @Override
    void add(ZmqSource source) {
        super.add(source);
        if (connector.isConnected()) {
            source.connected();
        } else if (failure != null) {
            source.connectFailed(failure);
        }
    }

    @Override
    void send(byte[] frame) {
        connector.send(frame);
    }

    @Override
    public void connected() {
        failure = null;
        subscribe(connector::send);
        sources.forEach(ZmqSource::connected);
    }

    @Override
    public boolean received(ZmtpMessage message) {
        dispatch(message, this);
        return true;
    }

    @Override
    public void sent(ZmqSource source) {
        // all sources are those of the one publisher
    }

    @Override
    public boolean feeds(ZmqSource source) {
        return true;
    }

    @Override
    public void disconnected(String why) {
        failure = why;
        sources.forEach(source -> source.disconnected(why));
    }

    @Override
    public void connectFailed(String why) {
        failure = why;
        sources.forEach(source -> source.connectFailed(why));
    }

    @Override
    void close() {
        connector.close();
    }
}
