package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.pipeline.source.FreshnessLimits;
import io.kvasir.pipeline.source.ZmqConfig;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.Settings.Source;
import io.kvasir.router.settings.WrongSettingsException;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

class SettingsTest {
    private final Settings.Builder builder = Settings.builder(RouterSettings.TABLE);

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "block-size | 0 | block-size=0 is out of range; range: 1 or more",
                "block-size | 3000000000 | block-size=3000000000 is out of range; range: 1 or more",
                "block-size | big | block-size=big is not a number; range: 1 or more",
                "block-size | 17.5 | block-size=17.5 is not a whole number; range: 1 or more",
                "max-blocks | 99999999999999999999 | max-blocks=99999999999999999999 is out of"
                        + " range; range: 1..1073741824",
                "ttl-secs | -99999999999999999999 | ttl-secs=-99999999999999999999 is out of"
                        + " range; range: 1 or more",
                "max-workers | 65537 | max-workers=65537 is out of range; range: 1..65536",
                "mode | fast | mode=fast is none of: kv, round-robin, random, power-of-two,"
                        + " least-loaded, least-connections, consistent-hash, direct",
                "approximate | maybe | approximate=maybe must be true or false",
                "temperature | -1 | temperature=-1 is out of range; range: 0 or more, finite",
                "temperature | NaN | temperature=NaN is out of range; range: 0 or more, finite",
                "temperature | Infinity | temperature=Infinity is out of range; range: 0 or more,"
                        + " finite",
                "temperature | 1e400 | temperature=1e400 is out of range; range: 0 or more, finite",
                "prune-target-ratio | 0 | prune-target-ratio=0 is out of range; range: 0..1, above"
                        + " 0",
                "ttl-secs | 0 | ttl-secs=0 is out of range; range: 1 or more",
                "ttl-secs | 9e9 | ttl-secs=9e9 is not a whole number; range: 1 or more",
                "index-bytes | 1 | index-bytes=1 is out of range; range: 0 or 65536..137438953344",
                "event-ring-size | 1000 | event-ring-size=1000 is out of range; range: 2..16777216,"
                        + " a power of two",
                "blok-size | 1 | unknown setting 'blok-size'; the nearest is 'block-size'",
                "maxWorkers | 1 | unknown setting 'maxWorkers'; the nearest is 'max-workers'",
            })
    void aWrongValueIsRefusedWithNameValueAndRange(String name, String value, String message) {
        final RouterConfig.Builder router = KvRouter.builder();
        assertEquals(
                message,
                assertThrows(IllegalArgumentException.class, () -> router.set(name, value))
                        .getMessage());
    }

    @Test
    void aNameOfManyCharactersIsCutInItsMessage() {
        final String name = "max-workers\n" + "x".repeat(1 << 20);
        final String said =
                assertThrows(
                                IllegalArgumentException.class,
                                () -> KvRouter.builder().set(name, "1"))
                        .getMessage();
        assertTrue(said.startsWith("unknown setting 'max-workers\\u{a}xxx"), said);
        assertTrue(said.contains("... (1048588 characters)'; the nearest is '"), said);
        assertTrue(said.length() < 1_000, said.length() + " characters");
    }

    @Test
    void everyDefaultIsInRangeAndReadsAsItIsWritten() {
        for (Setting<?> setting : RouterSettings.TABLE.rows()) {
            assertDefault(setting);
        }
    }

    private static <T> void assertDefault(Setting<T> setting) {
        if (setting.usual() != null) {
            assertEquals(setting.usual(), setting.parse(setting.printUsual()), setting.name());
        }
    }

    @Test
    void everyNameAndVariableIsOneOfAKind() {
        final Set<String> names = new HashSet<>();
        for (Setting<?> setting : RouterSettings.TABLE.rows()) {
            setting.variables().forEach(v -> assertEquals(true, names.add(v), v));
            setting.formerVariables().forEach(v -> assertEquals(true, names.add(v), v));
        }
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        RouterSettings.TABLE.with(
                                List.of(Setting.bool("other", true, "").alias("block-size"))));
    }

    @Test
    void eachWrongElementOfAListIsALineOfItsOwn() {
        final Setting<List<Integer>> list = Setting.list("sizes", "N", Integer::parseInt, "");
        assertEquals(
                List.of(
                        "sizes=a is not a number; range: a list",
                        "sizes=b is not a number; range: a list"),
                linesOf(() -> list.parse("1 a 2 b")));
        assertEquals(
                List.of(
                        "KVASIR_SIZES: sizes=a is not a number; range: a list",
                        "KVASIR_SIZES: sizes=b is not a number; range: a list"),
                linesOf(
                        () ->
                                Settings.builder(RouterSettings.TABLE.with(List.of(list)))
                                        .environment(Map.of("KVASIR_SIZES", "a b"))));
        assertEquals(List.of(1, 2), list.parse("1 2"));
    }

    private static List<String> linesOf(Executable wrong) {
        return assertThrows(WrongSettingsException.class, wrong).getMessage().lines().toList();
    }

    @Test
    void theStrongerSourceWinsWhateverTheOrder() {
        final Setting<Integer> size = RouterSettings.BLOCK_SIZE;
        assertEquals("default", builder.build().origin(size));
        builder.parse(size, "3", Source.FLAG, "--block-size");
        builder.parse(size, "1", Source.FILE, "kvasir.yaml:7");
        builder.environment(Map.of("KVASIR_BLOCK_SIZE", "2", "KVASIR_JAVA", "x"));
        assertEquals(3, builder.build().get(size));
        assertEquals("--block-size", builder.build().origin(size));
        assertEquals(Source.FLAG, builder.build().source(size));
        final Settings copy = builder.build();
        builder.set(size, 4);
        assertEquals(4, builder.build().get(size));
        assertEquals(3, copy.get(size));
        assertEquals(4, builder.build().toBuilder().environment(Map.of()).build().get(size));
    }

    @Test
    void variablesOfDynamoCountWhereOursAreNotSet() {
        builder.environment(
                Map.of(
                        "DYN_ROUTER_MODE", "round_robin",
                        "DYN_ROUTER_TEMPERATURE", "0.5",
                        "DYN_KV_OVERLAP_SCORE_WEIGHT", "2",
                        "DYN_KV_CACHE_BLOCK_SIZE", "64",
                        "KVASIR_BLOCK_SIZE", " 1_28 ",
                        "KVASIR_TTL_SECS", "7",
                        "KVASIR_SEED", ""));
        final Settings settings = builder.build();
        assertEquals(RoutingMode.ROUND_ROBIN, settings.get(RouterSettings.MODE));
        assertEquals(0.5, settings.get(RouterSettings.TEMPERATURE));
        assertEquals(2, settings.get(RouterSettings.OVERLAP_WEIGHT));
        assertEquals(128, settings.get(RouterSettings.BLOCK_SIZE));
        assertEquals("KVASIR_BLOCK_SIZE", settings.origin(RouterSettings.BLOCK_SIZE));
        assertEquals(Duration.ofSeconds(7), settings.get(RouterSettings.TTL));
        assertNull(settings.get(RouterSettings.SEED));
    }

    @Test
    void aFormerNameIsAVariableToo() {
        builder.environment(
                Map.of(
                        "KVASIR_ROUTER_TEMPERATURE", " 0.5 ",
                        "DYN_ROUTER_TEMPERATURE", "0.25",
                        "KVASIR_BUSY_THRESHOLD", "0.75",
                        "KVASIR_BLOCK_SIZE", "32",
                        "KVASIR_KV_CACHE_BLOCK_SIZE", "64"));
        final Settings settings = builder.build();
        assertEquals(0.5, settings.get(RouterSettings.TEMPERATURE));
        assertEquals("KVASIR_ROUTER_TEMPERATURE", settings.origin(RouterSettings.TEMPERATURE));
        assertEquals(0.75, settings.get(RouterSettings.BUSY_DECODE_BLOCKS));
        assertEquals(32, settings.get(RouterSettings.BLOCK_SIZE), "the name itself wins");
    }

    @Test
    void twoFormerNamesThatDifferAreRefusedUnlessTheNameItselfDecides() {
        final Map<String, String> same =
                Map.of("KVASIR_ROUTER_TTL", "7", "KVASIR_ROUTER_TTL_SECS", " 7");
        assertEquals(
                Duration.ofSeconds(7),
                Settings.builder(RouterSettings.TABLE)
                        .environment(same)
                        .build()
                        .get(RouterSettings.TTL));
        final Map<String, String> two =
                Map.of("KVASIR_ROUTER_TTL", "7", "KVASIR_ROUTER_TTL_SECS", "8");
        assertEquals(
                "KVASIR_ROUTER_TTL and KVASIR_ROUTER_TTL_SECS, former names of KVASIR_TTL_SECS,"
                        + " differ; set KVASIR_TTL_SECS alone",
                assertThrows(WrongSettingsException.class, () -> builder.environment(two))
                        .getMessage());
        final Map<String, String> decided =
                Map.of(
                        "KVASIR_ROUTER_TTL", "7",
                        "KVASIR_ROUTER_TTL_SECS", "8",
                        "KVASIR_TTL_SECS", "9");
        assertEquals(
                Duration.ofSeconds(9),
                builder.environment(decided).build().get(RouterSettings.TTL));
    }

    @Test
    void aWrongVariableIsNamed() {
        final Map<String, String> wrong = Map.of("KVASIR_TEMPERATURE", "hot");
        assertEquals(
                "KVASIR_TEMPERATURE: temperature=hot is not a number; range: 0 or more, finite",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> builder.environment(wrong).build())
                        .getMessage());
    }

    @Test
    void theRouterTakesEveryRow() {
        builder.set(RouterSettings.BOOKING_WAIT, WaitMode.BLOCKING)
                .set(RouterSettings.APPROXIMATE, true)
                .set(RouterSettings.MAX_TREE_SIZE, 100L)
                .set(RouterSettings.MAX_BLOCKS, 1000L)
                .set(RouterSettings.EVENT_RING_SIZE, 64)
                .set(RouterSettings.SEED, 5L);
        try (KvRouter router = KvRouter.builder().settings(builder.build()).build()) {
            assertEquals(2000, router.index().config().maxHeldBlocks(), "twice max-blocks");
            assertEquals(0, router.routedPrefixes().blocks());
            assertEquals(64, router.indexPipeline().ringSize());
            assertEquals(5L, router.settings().get(RouterSettings.SEED));
        }
    }

    @Test
    void theRowsOfEventConnectionsReachThePipeline() {
        builder.set(RouterSettings.EVENT_POLLERS, 3)
                .set(RouterSettings.EVENT_CONNECT_TIMEOUT, Duration.ofMillis(11))
                .set(RouterSettings.EVENT_RECONNECT, Duration.ofMillis(12))
                .set(RouterSettings.EVENT_RECONNECT_MAX, Duration.ofMillis(13))
                .set(RouterSettings.MAX_EVENT_BYTES, 14L)
                .set(RouterSettings.EVENT_WAITING_MESSAGES, 15)
                .set(RouterSettings.EVENT_WAITING_BYTES, 16L)
                .set(RouterSettings.EVENT_RECEIVE_BYTES, 17L)
                .set(RouterSettings.CONCURRENT_REPLAYS, 18)
                .set(RouterSettings.REPLAY_TIMEOUT, Duration.ofMillis(19))
                .set(RouterSettings.REPLAY_ATTEMPTS, 20)
                .set(RouterSettings.REPLAY_TAIL_CHECK, Duration.ZERO);
        assertEquals(
                new ZmqConfig(3, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0),
                RouterConfig.indexPipeline(builder.build()).zmq());
        final Settings usual = Settings.builder(RouterSettings.TABLE).build();
        assertEquals(ZmqConfig.defaults(), RouterConfig.indexPipeline(usual).zmq());
        assertEquals(FreshnessLimits.DEFAULT, RouterConfig.freshness(usual));
    }

    @Test
    void pausesBetweenTriesThatContradictAreNamed() {
        builder.set(RouterSettings.EVENT_RECONNECT, Duration.ofMillis(200))
                .set(RouterSettings.EVENT_RECONNECT_MAX, Duration.ofMillis(100));
        assertEquals(
                "event-reconnect-max-ms=100 must be event-reconnect-ms=200 or more",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> KvRouter.builder().settings(builder.build()).build())
                        .getMessage());
        assertThrows(
                IllegalArgumentException.class,
                () -> KvRouter.builder().settings(builder.build()).check());
        KvRouter.builder().check();
    }

    @ParameterizedTest
    @CsvSource({
        "overlap-weight, 2, 2.0",
        "overlap-weight, 1.0, ''",
        "max-tree-size, 16384, 16_384",
        "prefix-index, on, ON",
        "mode, round-robin, round_robin",
        "ttl-secs, 7, 007"
    })
    void theNumberOfSettingsIsThatOfTheirValuesHoweverTheyAreWritten(
            String name, String one, String other) {
        assertEquals(digest(name, one), digest(name, other));
        assertNotEquals(digest(name, one), digest("block-size", "32"));
    }

    private static long digest(String name, String written) {
        final RouterConfig.Builder router = KvRouter.builder();
        return RouterConfig.digest(
                (written.isEmpty() ? router : router.set(name, written)).settings());
    }

    @Test
    void nothingIsNoValue() {
        assertThrows(NullPointerException.class, () -> KvRouter.builder().mode(null));
    }

    @ParameterizedTest
    @CsvSource({"-999999", "-1", "1", "999999"})
    void aTimeThatWouldBePrintedAsNoneIsRefused(long ns) {
        final Duration value = Duration.ofNanos(ns);
        final IllegalArgumentException refused =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> KvRouter.builder().set(RouterSettings.BOOKING_TIMEOUT, value));
        assertEquals(
                "booking-timeout-ms=" + value + " is out of range; range: 0 or more",
                refused.getMessage());
        assertThrows(
                IllegalArgumentException.class,
                () -> KvRouter.builder().set(RouterSettings.SESSION_TTL, Duration.ofMillis(-999)));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "http://h:1 | http://h:1",
                "http://u:p@h:1 | http://***@h:1",
                "http://t@h:1,name=a | http://***@h:1,name=a",
                "nats://a:4222,nats://u:p@b:4222 | nats://a:4222,nats://***@b:4222",
                "http://u:p,w@h:1 | http://***@h:1",
                "http://u:p/w@h:1 | http://***@h:1",
                "u:p@h:1, a:2 | ***@h:1, a:2",
                "u:p/w@h:1 | ***@h:1",
                "http://h/a:b@c | http://h/a:b@c",
                "/var/log/a@b.log | /var/log/a@b.log",
                "a@b.log | a@b.log",
                "labels=zone:a;rack:b@c | labels=zone:a;rack:b@c",
                "http://***@h:1 | http://***@h:1"
            })
    void passwordsAreLeftOutOfAddressesAndNothingElse(String text, String shown) {
        assertEquals(shown, Setting.withoutPasswords(text));
    }

    @ParameterizedTest
    @ValueSource(strings = {"a:", "//a:", "a@", "//", "http://h:1,labels=z:a;", "x:y@,"})
    void aTextOfAnyLengthIsShownInTimeByItsLength(String part) {
        final String text = part.repeat(50_000); // by its square it would take minutes
        assertEquals(
                Setting.withoutPasswords(text),
                Setting.withoutPasswords(Setting.withoutPasswords(text)));
    }

    @Test
    void aNameOrAValueThatIsMissingIsSaid() {
        final RouterConfig.Builder builder = KvRouter.builder();
        assertEquals(
                "the value of block-size is null", missing(() -> builder.set("block-size", null)));
        assertEquals(
                "the value of router-id is null", missing(() -> builder.set("router-id", null)));
        assertEquals(
                "the value of block-size is null",
                missing(() -> builder.set(RouterSettings.BLOCK_SIZE, null)));
        assertEquals(
                "the name of a setting is null", missing(() -> builder.set((String) null, "1")));
    }

    private static String missing(Executable step) {
        return assertThrows(NullPointerException.class, step).getMessage();
    }
}
