package io.kvasir.gateway.server;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.FrameClient;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.RawClient;
import io.kvasir.gateway.upstream.Descriptors;
import io.kvasir.testsupport.Eventually;

import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** More connections than there may be. */
@Order(1) // takes long: begins first, beside the others
class ConnectionCapTest {
    private static final String ANSWER = "{\"choices\":[],\"usage\":{\"prompt_tokens\":1}}";
    private static final String GET = "GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";

    /** All that a client of HTTP/2 says before its first request: no settings. */
    private static final String HTTP2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

    private final CountDownLatch goOn = new CountDownLatch(1);
    private final FakeEngine engine =
            new FakeEngine(
                    call -> {
                        goOn.await();
                        call.json(200, ANSWER);
                    });
    private final List<RawClient> clients = new ArrayList<>();
    private GatewayServer gateway;

    private void start(long most, int perClient) {
        gateway =
                GatewayServer.start(
                        Gateways.config(engine.worker("w"))
                                .set(GatewaySettings.MAX_CONNECTIONS, most)
                                .set(GatewaySettings.MAX_CONNECTIONS_PER_CLIENT, perClient)
                                .set(GatewaySettings.CLIENT_IDLE_TIMEOUT, Duration.ofHours(1))
                                .set(GatewaySettings.HEAD_TIMEOUT, Duration.ofHours(1))
                                .build());
    }

    @AfterEach
    void stop() throws IOException {
        goOn.countDown();
        for (RawClient client : clients) {
            client.close();
        }
        if (gateway != null) {
            gateway.close();
        }
        engine.close();
    }

    private RawClient client() throws IOException {
        final RawClient client = new RawClient(gateway.port());
        clients.add(client);
        return client;
    }

    /** Clients whose requests are under way. */
    private List<RawClient> busy(int count) throws Exception {
        final List<RawClient> busy = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            busy.add(client().post("/v1/completions", "{\"prompt\":[1]}"));
        }
        Eventually.holds("all are under way", () -> engine.inFlight.get() == count);
        return busy;
    }

    @Test
    void connectionsBeyondTheLimitWaitAndThoseThatAreThereGoOn() throws Exception {
        start(3, 0);
        final List<RawClient> busy = busy(3);
        final List<RawClient> waiting = new ArrayList<>();
        for (int i = 0; i < 20; i++) {
            waiting.add(client().send(GET));
        }
        assertEquals(200, Gateways.admin(gateway, "/health").statusCode());
        assertEquals(200, Gateways.admin(gateway, "/metrics").statusCode());
        goOn.countDown();
        for (RawClient client : busy) {
            client.readUntil(ANSWER);
        }
        for (RawClient client : waiting) {
            client.readUntil("\"object\":\"list\"");
        }
    }

    @Test
    void unfinishedHeadsLeaveTheAdminPortRoomToAnswer() throws Exception {
        start(8, 0);
        for (int i = 0; i < 64; i++) {
            clients.add(new RawClient(gateway.adminPort()).send("GET /health HTTP/1.1\r\n"));
        }
        assertEquals(200, Gateways.admin(gateway, "/live").statusCode());
    }

    @Test
    void anUnfinishedHeadMakesRoomWhereRequestsUnderWayDoNot() throws Exception {
        start(4, 0);
        final List<RawClient> busy = busy(3);
        final RawClient half = client().send("GET /v1/models HTTP/1.1\r\n");
        client().send(GET).readUntil("\"object\":\"list\"");
        final String answer = half.readAll();
        assertTrue(answer.startsWith("HTTP/1.1 408 "), answer);
        goOn.countDown();
        for (RawClient client : busy) {
            client.readUntil(ANSWER);
        }
    }

    @Test
    void idleConnectionsMakeRoomForNewOnes() throws Exception {
        start(8, 0);
        final List<RawClient> busy = busy(2);
        for (int i = 0; i < 16; i++) {
            client().send(GET).readUntil("\"object\":\"list\""); // and stays open
        }
        goOn.countDown();
        for (RawClient client : busy) {
            client.readUntil(ANSWER);
        }
    }

    @Test
    void theLimitHoldsForConnectionsThatSendNothing() throws Exception {
        start(4, 0);
        for (int i = 0; i < 7; i++) {
            client();
        }
        client().send(GET).readUntil("\"object\":\"list\"");
    }

    @Test
    void idleConnectionsOfHttp2MakeRoomAndThoseWithStreamsStay() throws Exception {
        start(4, 0);
        try (FrameClient busy = new FrameClient(gateway.port())) {
            final FrameClient.Exchange underWay = busy.post("/v1/completions", "{\"prompt\":[1]}");
            try (FrameClient first = new FrameClient(gateway.port());
                    FrameClient second = new FrameClient(gateway.port())) {
                for (FrameClient idle : List.of(first, second)) {
                    idle.get("GET", "/v1/models").whole();
                }
                for (FrameClient idle : List.of(first, second)) {
                    client();
                    client().send(GET).readUntil("\"object\":\"list\""); // room for one is enough
                    assertTrue(idle.awaitClosed());
                    assertEquals(ErrorCode.NO_ERROR.code, idle.goAways().getFirst().getError());
                }
            }
            goOn.countDown();
            assertEquals(ANSWER, underWay.whole());
            assertEquals(List.of(), busy.goAways());
        }
    }

    @Test
    void theLimitHoldsForConnectionsOfHttp2ThatDoNotEndWhenTheyAreAsked() throws Exception {
        start(4, 0);
        for (int i = 0; i < 7; i++) {
            client().send(HTTP2);
        }
        client().send(GET).readUntil("\"object\":\"list\"");
    }

    @Test
    void aClientWithTooManyConnectionsIsRefusedAndOthersAreServed() throws Exception {
        start(100, 3);
        for (int i = 0; i < 3; i++) {
            client().send(GET).readUntil("\"object\":\"list\"");
        }
        for (int i = 0; i < 10; i++) {
            assertEquals("", answer(client()));
        }
        try (Socket other =
                new Socket(
                        InetAddress.getLoopbackAddress(),
                        gateway.port(),
                        InetAddress.getByName("127.0.0.2"),
                        0)) {
            other.setSoTimeout(60_000);
            other.getOutputStream().write(GET.getBytes(java.nio.charset.StandardCharsets.US_ASCII));
            assertEquals('H', other.getInputStream().read());
        }
        clients.get(0).close();
        Eventually.holds("there is room again", () -> answer().startsWith("HTTP/1.1 200"));
    }

    private String answer() {
        try (RawClient client = new RawClient(gateway.port())) {
            return answer(client);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    /** What comes; nothing where the connection is closed. */
    private static String answer(RawClient client) throws IOException {
        try {
            return client.send("GET /v1/models HTTP/1.0\r\n\r\n").readAll();
        } catch (SocketException e) {
            return "";
        }
    }

    @Test
    void aPortThatIsBeingClosedAcceptsNothingWhenItHasRoomAgain() {
        final ServerConnector connector = new ServerConnector(new Server());
        final ConnectionCap cap = new ConnectionCap(connector, 1, "max-connections");
        connector.setAccepting(false);
        cap.unlimit();
        assertTrue(connector.isAccepting());
        cap.end();
        cap.unlimit();
        assertFalse(connector.isAccepting());
    }

    @Test
    void anIpv6ClientIsItsNetwork() throws UnknownHostException {
        assertEquals(client("2001:db8::1"), client("2001:db8::ffff:1"));
        assertNotEquals(client("2001:db8::1"), client("2001:db8:0:1::1"));
        assertNotEquals(client("10.0.0.1"), client("10.0.0.2"));
        assertEquals(client("10.0.0.1"), client("::ffff:10.0.0.1"));
        assertNotEquals(client("::1"), client("::2"));
    }

    private static Object client(String address) throws UnknownHostException {
        return ClientCap.client(InetAddress.getByName(address));
    }

    @Test
    void descriptorsAreSharedByClientsAndWorkers() {
        start(1, 0);
        assertTrue(Descriptors.affordableConnections(Descriptors.free()) >= 16);
    }
}
