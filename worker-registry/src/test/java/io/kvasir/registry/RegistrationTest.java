package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.registry.RegistryException.Kind;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

class RegistrationTest {
    private static final InstanceId ID = new InstanceId("prod", "decode", "generate", "d-0");

    private static Registration full() {
        final Map<String, String> labels = new LinkedHashMap<>();
        labels.put("zone", "a");
        labels.put("rack", "7");
        return Registration.builder(ID, "m", URI.create("http://10.0.0.7:8000"))
                .generation(1_854_321_987_654_321L)
                .modelPath("/models/m")
                .types(EnumSet.of(ModelType.CHAT, ModelType.COMPLETIONS, ModelType.DECODE))
                .dpRanks(2)
                .blockSize(16)
                .events(
                        new Registration.Events(
                                "tcp://10.0.0.7:5557",
                                "tcp://10.0.0.7:5559",
                                false,
                                "kv",
                                "physical"))
                .handoff(new Registration.Handoff("vllm", null))
                .labels(labels)
                .limits(new Registration.Limits(49_152, 8192))
                .build();
    }

    private static String golden() throws IOException {
        try (InputStream in = RegistrationTest.class.getResourceAsStream("registration-1.json")) {
            return new String(in.readAllBytes(), StandardCharsets.UTF_8).strip();
        }
    }

    private static RegistryException refusal(String document) {
        final RegistryException e =
                assertThrows(
                        RegistryException.class,
                        () -> Registration.decode(document.getBytes(StandardCharsets.UTF_8)));
        assertEquals(Kind.MALFORMED, e.kind());
        return e;
    }

    @Test
    void theDocumentIsTheOneOfTheSpecification() throws IOException {
        assertEquals(golden(), new String(full().encode(), StandardCharsets.UTF_8));
        assertEquals(full(), Registration.decode(golden().getBytes(StandardCharsets.UTF_8)));
    }

    @Test
    void whoItIsOnAnEventPlaneIsSaidBesideItsOwnEvents() {
        final Registration r =
                Registration.builder(ID, "m", URI.create("http://h:1"))
                        .generation(1)
                        .events("tcp://h:2", null)
                        .onPlane(new Registration.OnPlane(Long.MAX_VALUE, 3))
                        .build();
        assertEquals(r, Registration.decode(r.encode()));
        final String text = new String(r.encode(), StandardCharsets.UTF_8);
        final String named = "\"event_plane\":{\"worker_id\":9223372036854775807,\"rank\":3}";
        assertTrue(text.contains(named), text);
        assertEquals(
                new Registration.OnPlane(Long.MAX_VALUE, 0),
                Registration.decode(
                                text.replace(",\"rank\":3", "").getBytes(StandardCharsets.UTF_8))
                        .plane());
        assertTrue(
                refusal(text.replace("\"rank\":3", "\"rank\":-1")).getMessage().contains("rank"));
    }

    @Test
    void theRankOfItsEventsIsSaidWhereItIsNotTheFirst() {
        final Registration.Events events =
                new Registration.Events("tcp://h:2", null, false, "", "auto", 3);
        final Registration r =
                Registration.builder(ID, "m", URI.create("http://h:1"))
                        .generation(1)
                        .events(events)
                        .build();
        assertEquals(r, Registration.decode(r.encode()));
        final String text = new String(r.encode(), StandardCharsets.UTF_8);
        assertTrue(text.contains("\"removals\":\"auto\",\"rank\":3}"), text);
        final String first = text.replace(",\"rank\":3", "");
        assertEquals(
                0, Registration.decode(first.getBytes(StandardCharsets.UTF_8)).events().rank());
        assertTrue(
                refusal(text.replace("\"rank\":3", "\"rank\":-1")).getMessage().contains("rank"));
    }

    private static Registration marked() {
        return Registration.builder(ID, "m", URI.create("http://h:1"))
                .generation(1)
                .labels(Map.of("zone", "a"))
                .adapters(
                        new Registration.Adapters(
                                new LinkedHashSet<>(List.of("sql", "fr:2")),
                                Map.of("fr:2", Long.MAX_VALUE)))
                .taints(Set.of("spot"))
                .build();
    }

    @Test
    void adaptersAndTaintsAreReadAsTheyWereSaid() {
        final Registration r = marked();
        assertEquals(r, Registration.decode(r.encode()));
        assertEquals(r.adapters(), r.withState(InstanceState.DRAINING).adapters());
        assertEquals(r.taints(), r.withGeneration(2).taints());
        final String text = new String(r.encode(), StandardCharsets.UTF_8);
        assertTrue(
                text.endsWith(
                        "\"labels\":{\"zone\":\"a\"},\"lora\":[\"sql\",\"fr:2\"],"
                                + "\"lora_ids\":{\"fr:2\":9223372036854775807},"
                                + "\"taints\":[\"spot\"]}"),
                text);
    }

    @Test
    void aDocumentWithoutAdaptersAndTaintsIsReadAsBefore() throws IOException {
        final Registration r = Registration.decode(golden().getBytes(StandardCharsets.UTF_8));
        assertEquals(Registration.Adapters.NONE, r.adapters());
        assertEquals(Set.of(), r.taints());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "[\"sql\",\"fr:2\"] | \"sql\" | lora | list",
                "[\"sql\",\"fr:2\"] | [\"sql\",7] | lora | texts",
                "[\"sql\",\"fr:2\"] | [\"sql\",\"sql\"] | lora | once",
                "[\"sql\",\"fr:2\"] | [\" \"] | lora | 512",
                "[\"sql\",\"fr:2\"] | [\"a;b\"] | lora | semicolon",
                "[\"sql\",\"fr:2\"] | {} | lora | list",
                "{\"fr:2\":9223372036854775807} | [1] | lora_ids | object",
                "{\"fr:2\":9223372036854775807} | {\"a\":0} | lora_ids.a | 1..",
                "{\"fr:2\":9223372036854775807} | {\"a\":\"1\"} | lora_ids.a | whole",
                "{\"fr:2\":9223372036854775807} | {\"a\":1,\"b\":1} | lora_ids.b | no other",
                "[\"spot\"] | \"spot\" | taints | list",
                "[\"spot\"] | [null] | taints | texts",
                "[\"spot\"] | [\"a b\"] | taints | 63",
                "[\"spot\"] | [\"a\",\"a\"] | taints | once",
            })
    void adaptersAndTaintsThatCannotBeAreRefusedByNameAndLimit(
            String was, String is, String key, String said) {
        final String text = new String(marked().encode(), StandardCharsets.UTF_8);
        assertTrue(text.contains(was), text);
        final String message = refusal(text.replace(was, is)).getMessage();
        assertTrue(message.contains(key) && message.contains(said), message);
    }

    @Test
    void tooManyOrTooLongOnesAreRefusedWithTheLimit() {
        final String text = new String(marked().encode(), StandardCharsets.UTF_8);
        final String many =
                IntStream.rangeClosed(0, 4096)
                        .mapToObj(i -> "\"" + i + "\"")
                        .collect(Collectors.joining(",", "[", "]"));
        assertTrue(refusal(text.replace("[\"sql\",\"fr:2\"]", many)).getMessage().contains("4096"));
        assertTrue(refusal(text.replace("[\"spot\"]", many)).getMessage().contains("16"));
        final String pairs =
                IntStream.rangeClosed(1, 4097)
                        .mapToObj(i -> "\"" + i + "\":" + i)
                        .collect(Collectors.joining(",", "{", "}"));
        final String message =
                refusal(text.replace("{\"fr:2\":9223372036854775807}", pairs)).getMessage();
        assertTrue(message.contains("lora_ids") && message.contains("4096"), message);
        final String longName = refusal(text.replace("sql", "a".repeat(600))).getMessage();
        assertTrue(longName.contains("512") && longName.length() < 300, longName);
        assertTrue(refusal(text.replace("spot", "a".repeat(64))).getMessage().contains("1 to 63"));
    }

    @Test
    void theLeastDocumentHasTheUsualValues() {
        final Registration least =
                Registration.builder(ID, "m", URI.create("http://h:1")).generation(1).build();
        assertEquals(least, Registration.decode(least.encode()));
        assertEquals(InstanceRole.BOTH, least.role());
        assertEquals(Set.of(ModelType.CHAT, ModelType.COMPLETIONS), least.types());
    }

    @Test
    void unknownKeysAndNullsAreNotSaid() throws IOException {
        final String more =
                golden().replaceFirst("\\{", "{\"colour\":[1,{\"a\":null}],\"topology\":null,");
        assertEquals(full(), Registration.decode(more.getBytes(StandardCharsets.UTF_8)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "version",
                "namespace",
                "component",
                "endpoint",
                "instance",
                "generation",
                "state",
                "input",
                "types",
                "url",
                "dp_ranks"
            })
    void aMissingKeyIsRefusedByName(String key) throws IOException {
        final String without = golden().replace("\"" + key + "\":", "\"other\":");
        final String message = refusal(without).getMessage();
        assertTrue(message.contains(key), message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"version\":1 | \"version\":2 | version=2",
                "\"version\":1 | \"version\":\"1\" | version",
                "\"namespace\":\"prod\" | \"namespace\":\"a/b\" | namespace",
                "\"namespace\":\"prod\" | \"namespace\":7 | namespace",
                "\"instance\":\"d-0\" | \"instance\":\" \" | instance",
                "\"generation\":1854321987654321 | \"generation\":0 | generation",
                "\"generation\":1854321987654321 | \"generation\":99999999999999999999 |"
                        + " generation",
                "\"generation\":1854321987654321 | \"generation\":1.5 | generation",
                "\"state\":\"ready\" | \"state\":\"READY\" | state",
                "\"input\":\"text\" | \"input\":\"speech\" | input",
                "[\"chat\",\"completions\",\"decode\"] | [] | types",
                "[\"chat\",\"completions\",\"decode\"] | [\"chat\",7] | types",
                "[\"chat\",\"completions\",\"decode\"] | [\"prefill\"] | role",
                "\"role\":\"decode\" | \"role\":\"prefill\" | role",
                "http://10.0.0.7:8000 | ftp://10.0.0.7 | url",
                "http://10.0.0.7:8000 | http://u:secret@h:1 | url",
                "\"dp_ranks\":2 | \"dp_ranks\":0 | dp_ranks",
                "\"dp_ranks\":2 | \"dp_ranks\":1000000 | dp_ranks",
                "\"block_size\":16 | \"block_size\":-1 | block_size",
                "\"endpoint\":\"tcp://10.0.0.7:5557\" | \"endpoint\":[] | events.endpoint",
                "\"bind\":false | \"bind\":\"no\" | events.bind",
                "\"protocol\":\"vllm\" | \"protocol\":null | handoff.protocol",
                "\"rack\":\"7\" | \"rack\":7 | labels.rack",
                "\"kv_blocks\":49152 | \"kv_blocks\":\"many\" | limits.kv_blocks",
            })
    void aWrongValueIsRefusedByName(String was, String is, String named) throws IOException {
        assertTrue(golden().contains(was), was);
        final String message = refusal(golden().replace(was, is)).getMessage();
        assertTrue(message.contains(named), message);
        assertTrue(!message.contains("secret"), message);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "[]", "null", "7", "{", "{} {}", "{\"version\":1,\"version\":1}"})
    void whatIsNoObjectIsRefused(String document) {
        refusal(document);
    }

    @Test
    void aDocumentThatIsTooLongIsRefused() {
        assertTrue(refusal(" ".repeat(70_000) + "{}").getMessage().contains("65536"));
    }

    @Test
    void eitherNameOrPathSaysTheModel() throws IOException {
        final String byPath = golden().replace("\"model_name\":\"m\",", "");
        assertEquals(
                "/models/m", Registration.decode(byPath.getBytes(StandardCharsets.UTF_8)).model());
        assertTrue(refusal(byPath.replace("model_path", "x")).getMessage().contains("model_name"));
    }

    @Test
    void aPrefillWorkerSaysTheNameOfItsDecodePool() {
        final Registration prefill =
                Registration.builder(
                                new InstanceId("prod", "prefill", "generate", "p-0"),
                                "m",
                                URI.create("http://h:1"))
                        .types(Set.of(ModelType.PREFILL))
                        .build();
        assertEquals(InstanceRole.PREFILL, prefill.role());
        assertEquals(full().model(), prefill.model());
    }

    @Test
    void aRoleThatContradictsTheTypesIsRefusedInTheWordsOfTheDocument() {
        final Registration.Builder builder =
                Registration.builder(
                                new InstanceId("prod", "prefill", "generate", "p-0"),
                                "m",
                                URI.create("http://h:1"))
                        .role(InstanceRole.PREFILL)
                        .types(Set.of(ModelType.COMPLETIONS, ModelType.CHAT));
        assertEquals(
                "role=prefill contradicts types=[chat, completions]: the role prefill has the type"
                        + " prefill alone",
                assertThrows(IllegalArgumentException.class, builder::build).getMessage());
    }

    @Test
    void theRoleSaysWhatIsAnsweredWhereNothingElseDoes() {
        final Registration.Builder builder =
                Registration.builder(
                        new InstanceId("prod", "prefill", "generate", "p-0"),
                        "m",
                        URI.create("http://h:1"));
        assertEquals(Set.of(ModelType.CHAT, ModelType.COMPLETIONS), builder.build().types());
        assertEquals(Set.of(ModelType.PREFILL), builder.role(InstanceRole.PREFILL).build().types());
    }

    @Test
    void keysOfDifferentNamesDifferAndFitIntoBothStores() {
        final InstanceId odd = new InstanceId("a.b", "c=d", "é", "h:1");
        assertEquals("a=2Eb/c=3Dd/=C3=A9/h=3A1", odd.key());
        assertTrue(odd.key().matches("[-/_=a-zA-Z0-9]+"));
        assertTrue(odd.key().startsWith(InstanceId.prefix("a.b")));
        assertThrows(IllegalArgumentException.class, () -> new InstanceId("a", "", "c", "d"));
        assertThrows(IllegalArgumentException.class, () -> new InstanceId("a", "b/c", "d", "e"));
    }

    /** Adapters within their limits may still be more than a document holds. */
    @Test
    void whatNoReaderWouldTakeIsNotWritten() {
        final Set<String> names = new LinkedHashSet<>();
        for (int i = 0; i < Registration.Adapters.MOST; i++) {
            names.add("adapter-of-some-length-" + i);
        }
        final RegistryException refused =
                assertThrows(RegistryException.class, () -> withAdapters(names).encode());
        assertEquals(RegistryException.Kind.MALFORMED, refused.kind());
        assertTrue(refused.getMessage().contains("at most 65536"), refused.getMessage());
        assertTrue(refused.getMessage().contains("lora"), refused.getMessage());
    }

    private static Registration withAdapters(Set<String> names) {
        return Registration.builder(ID, "m", URI.create("http://h:1"))
                .generation(1)
                .adapters(new Registration.Adapters(names, Map.of()))
                .build();
    }

    @Test
    void whatCanBeWrittenCanBeSaidToDrain() {
        final int rest = (64 << 10) - labelled(0).withState(InstanceState.DRAINING).encode().length;
        final Registration longest = labelled(rest);
        assertEquals(longest, Registration.decode(longest.encode()));
        assertEquals(64 << 10, longest.withState(InstanceState.DRAINING).encode().length);
        assertThrows(RegistryException.class, () -> labelled(rest + 1).encode());
    }

    private static Registration labelled(int length) {
        return Registration.builder(ID, "m", URI.create("http://h:1"))
                .generation(1)
                .labels(Map.of("l", "x".repeat(length)))
                .build();
    }

    @Test
    void whatIsNoJsonIsSaidWithoutWordsOfTheLibrary() {
        assertEquals(
                "a registration cannot be read: Unexpected close marker '}': expected ']' (for"
                        + " Array starting at line 1, column 6)",
                refusal("{\"a\":[}").getMessage());
    }
}
