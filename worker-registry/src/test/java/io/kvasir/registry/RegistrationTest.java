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
import java.util.Map;
import java.util.Set;

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
}
