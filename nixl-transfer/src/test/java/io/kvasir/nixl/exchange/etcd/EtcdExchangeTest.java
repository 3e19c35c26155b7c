package io.kvasir.nixl.exchange.etcd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.RecordOwner;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.nixl.exchange.ServedExchangeContract;
import io.kvasir.testsupport.EtcdServer;
import io.kvasir.testsupport.ServerProcess;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

@Tag("integration")
class EtcdExchangeTest extends ServedExchangeContract {
    private static final AtomicInteger TESTS = new AtomicInteger();

    @TempDir static Path folder;

    private static EtcdServer server;

    private final String prefix = "/test/" + TESTS.incrementAndGet() + "/";

    /** The other process. */
    static final class Owner {
        private Owner() {}

        public static void main(String[] args) throws IOException {
            final EtcdExchange exchange = new EtcdExchange(config(URI.create(args[2]), args[3]));
            RecordOwner.serve(
                    exchange, "published", Records.record(args[0], Long.parseLong(args[1]), 1));
        }
    }

    private static EtcdConfig config(URI uri, String prefix) {
        return config(uri, prefix, Duration.ofSeconds(10));
    }

    private static EtcdConfig config(URI uri, String prefix, Duration timeout) {
        return new EtcdConfig(List.of(uri), prefix, TTL, timeout);
    }

    @BeforeAll
    static void startServer() throws InterruptedException {
        try {
            server = EtcdServer.in(EtcdServer.program(), folder);
            server.start();
        } catch (IOException e) {
            abort("skipped: no etcd: " + e.getMessage());
        }
    }

    @AfterAll
    static void stopServer() throws InterruptedException {
        if (server != null) {
            server.stop();
        }
    }

    @Override
    protected MetadataExchange open() {
        return closing(new EtcdExchange(config(server.uri(), prefix)));
    }

    @Override
    protected MetadataExchange open(Duration timeout) {
        return closing(new EtcdExchange(config(server.uri(), prefix, timeout)));
    }

    @Override
    protected Process startOwner(String name, long incarnation) throws IOException {
        return RecordOwner.start(
                Owner.class,
                List.of(name, Long.toString(incarnation), server.uri().toString(), prefix));
    }

    @Override
    protected long unreachable(MetadataExchange exchange) {
        return ((EtcdExchange) exchange).unreachable();
    }

    @Override
    protected ServerProcess server() {
        return server;
    }

    @Test
    void anEtcdThatIsNotThereIsNamed() {
        final MetadataExchange lost =
                closing(new EtcdExchange(config(URI.create("http://127.0.0.1:1"), prefix)));
        final ExchangeException refusal =
                assertThrows(
                        ExchangeException.class, () -> lost.publish(Records.record("a", 1, 1)));
        assertEquals(Kind.UNAVAILABLE, refusal.kind());
        assertTrue(refusal.getMessage().contains("127.0.0.1:1"), refusal.getMessage());
        assertThrows(ExchangeException.class, () -> lost.find("a", Duration.ZERO));
    }
}
