package io.kvasir.nats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;
import io.kvasir.nixl.exchange.RecordOwner;
import io.kvasir.nixl.exchange.Records;
import io.kvasir.nixl.exchange.ServedExchangeContract;
import io.kvasir.testsupport.Eventually;
import io.kvasir.testsupport.RunningNats;
import io.kvasir.testsupport.ServerProcess;
import io.nats.client.Connection;
import io.nats.client.KeyValue;
import io.nats.client.api.KeyValueConfiguration;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

@Tag("integration")
class NatsExchangeTest extends ServedExchangeContract {
    private static final AtomicInteger TESTS = new AtomicInteger();

    @RegisterExtension static final RunningNats NATS = new RunningNats();

    private final String bucket = "test-" + TESTS.incrementAndGet();

    /** The other process. */
    static final class Owner {
        private Owner() {}

        public static void main(String[] args) throws IOException {
            RecordOwner.serve(
                    new NatsExchange(config(args[2], args[3])),
                    "published",
                    Records.record(args[0], Long.parseLong(args[1]), 1));
        }
    }

    /** A slow machine must not look like a silent owner. */
    private static NatsConfig config(String url, String bucket) {
        return config(url, bucket, Duration.ofSeconds(10));
    }

    private static NatsConfig config(String url, String bucket, Duration timeout) {
        return new NatsConfig(new NatsAccess(url, null, null, timeout), bucket, TTL);
    }

    @Override
    protected MetadataExchange open() {
        return closing(new NatsExchange(config(NATS.url(), bucket)));
    }

    @Override
    protected MetadataExchange open(Duration timeout) {
        return closing(new NatsExchange(config(NATS.url(), bucket, timeout)));
    }

    @Override
    protected Process startOwner(String name, long incarnation) throws IOException {
        return RecordOwner.start(
                Owner.class, List.of(name, Long.toString(incarnation), NATS.url(), bucket));
    }

    @Override
    protected long unreachable(MetadataExchange exchange) {
        return ((NatsExchange) exchange).unreachable();
    }

    @Override
    protected ServerProcess server() {
        return NATS.server();
    }

    @Test
    void aBucketThatIsDeletedIsMadeAnewAndWatchedAnew() throws Exception {
        final MetadataExchange a = open();
        final MetadataExchange b = open();
        a.publish(Records.record("a", 1, 1));
        b.find("a", PATIENCE);
        final Records.Received received = new Records.Received();
        b.watch("later", received);
        final Connection connection = Patient.connect(NATS.url());
        try {
            connection.keyValueManagement().delete(bucket);
        } finally {
            connection.close();
        }
        publishWhenItIsBack(
                a, Records.record("later", 1, 1), System.nanoTime() + PATIENCE.toNanos());
        assertEquals("UP later 1.1", received.next());
        assertEquals(Records.record("a", 1, 1), open().find("a", PATIENCE));
    }

    @Test
    void aBucketThatIsThereKeepsItsTtlAndRecordsAreRenewedByIt() throws Exception {
        final Connection connection = Patient.connect(NATS.url());
        try {
            connection
                    .keyValueManagement()
                    .create(KeyValueConfiguration.builder().name(bucket).ttl(TTL).build());
            final KeyValue cards = connection.keyValue(bucket);
            final NatsAccess access = config(NATS.url(), bucket).access();
            closing(new NatsExchange(new NatsConfig(access, bucket, TTL.multipliedBy(100))))
                    .publish(Records.record("a", 1, 1));
            final String key = cards.keys().getFirst();
            cards.put("YWdlZA", new byte[] {1}); // not renewed by anybody
            Eventually.until("it is deleted", () -> cards.get("YWdlZA") == null);
            assertNotNull(cards.get(key), "younger than its TTL");
        } finally {
            connection.close();
        }
    }

    @Test
    void aRecordBelowAnotherNameIsNone() throws Exception {
        final NatsExchange exchange = (NatsExchange) open();
        exchange.publish(Records.record("first", 1, 1)); // the bucket is there
        final Connection connection = Patient.connect(NATS.url());
        try {
            connection.keyValue(bucket).put("Yg", Records.record("a", 1, 1).encode());
            exchange.publish(Records.record("last", 1, 1));
            exchange.find("last", PATIENCE);
            assertEquals(1, exchange.malformed());
            assertThrows(ExchangeException.class, () -> exchange.find("a", Duration.ZERO));
        } finally {
            connection.close();
        }
    }

    @Test
    void aNatsThatIsNotThereIsNamed() {
        final ExchangeException refusal =
                assertThrows(
                        ExchangeException.class,
                        () -> new NatsExchange(config("nats://127.0.0.1:1", bucket)));
        assertEquals(Kind.UNAVAILABLE, refusal.kind());
        assertTrue(refusal.getMessage().contains("127.0.0.1:1"), refusal.getMessage());
    }

    @Test
    void limitsAreChecked() {
        assertThrows(IllegalArgumentException.class, () -> config("nats://x", "no bucket"));
        assertThrows(
                IllegalArgumentException.class,
                () -> new NatsConfig(NatsAccess.of("nats://x"), "b", Duration.ZERO));
    }
}
