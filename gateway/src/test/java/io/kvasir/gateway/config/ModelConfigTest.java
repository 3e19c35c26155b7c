package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.settings.Settings.Source;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The models of a gateway, as they are set. */
class ModelConfigTest {
    @TempDir private Path folder;

    private static GatewayConfig.Builder first() {
        return GatewayConfig.builder()
                .set(GatewaySettings.MODEL, "m")
                .set(GatewaySettings.LORA, List.of("m-fr"))
                .set(GatewaySettings.TOKENIZER, Path.of("/models/m"));
    }

    private static GatewayConfig.Builder with(String... specs) {
        return first().flag(GatewaySettings.MODELS, List.of(specs));
    }

    private static void assertRefused(GatewayConfig.Builder config, String... parts) {
        assertMessage(assertThrows(IllegalArgumentException.class, config::build), parts);
    }

    private static void assertMessage(Exception e, String... parts) {
        for (String part : parts) {
            assertTrue(e.getMessage().contains(part), e.getMessage());
        }
    }

    private GatewayConfig read(String yaml) throws IOException {
        return GatewayConfig.builder()
                .file(Files.writeString(folder.resolve("kvasir.yaml"), yaml))
                .build();
    }

    @Test
    void aGatewayOfOneModelHasThatAlone() {
        final GatewayConfig config = first().build();
        assertEquals(1, config.models().size());
        assertSame(config, config.models().getFirst());
    }

    @Test
    void aModelHasTheGatewaysValuesButForItsOwnAndItsTokenizerAndAdapters() {
        final GatewayConfig config =
                with("name=n,block-size=32,lora=n-fr;n-de,mode=round-robin,split-min-tokens=7")
                        .set(RouterSettings.BLOCK_SIZE, 64)
                        .set(RouterSettings.OVERLAP_WEIGHT, 3.0)
                        .set(RouterSettings.MAX_WORKERS, 5)
                        .set(GatewaySettings.ANSWER_TIMEOUT, Duration.ofSeconds(9))
                        .build();
        final GatewayConfig m = config.models().get(0);
        final GatewayConfig n = config.models().get(1);
        assertEquals(64, m.get(RouterSettings.BLOCK_SIZE));
        assertEquals(RoutingMode.KV, m.get(RouterSettings.MODE));
        assertEquals("n", n.get(GatewaySettings.MODEL));
        assertEquals(32, n.get(RouterSettings.BLOCK_SIZE));
        assertEquals(RoutingMode.ROUND_ROBIN, n.get(RouterSettings.MODE));
        assertEquals(7, n.get(GatewaySettings.SPLIT_MIN_TOKENS));
        assertEquals(List.of("n-fr", "n-de"), n.get(GatewaySettings.LORA));
        assertNull(n.get(GatewaySettings.TOKENIZER), "another model's would hash other tokens");
        assertEquals(3.0, n.get(RouterSettings.OVERLAP_WEIGHT));
        assertEquals(5, n.get(RouterSettings.MAX_WORKERS));
        assertEquals(Duration.ofSeconds(9), n.get(GatewaySettings.ANSWER_TIMEOUT));
        assertEquals("m, n", config.modelNames());
    }

    @Test
    void aModelFromCodeIsThatOfItsText() {
        final ModelConfig model =
                new ModelConfig.Builder()
                        .name("org/n")
                        .set(RouterSettings.BLOCK_SIZE, 32)
                        .set(GatewaySettings.LORA, List.of("a", "b"))
                        .build();
        assertEquals("name=org/n,lora=a;b,block-size=32", model.toString());
        assertEquals(model, ModelConfig.parse(model.toString()));
        assertEquals(model.hashCode(), ModelConfig.parse(model.toString()).hashCode());
        assertNotEquals(model, ModelConfig.parse("name=org/n"));
        assertThrows(
                IllegalArgumentException.class,
                () -> new ModelConfig.Builder().set(GatewaySettings.PORT, 1));
        assertThrows(
                IllegalArgumentException.class,
                () -> new ModelConfig.Builder().set(RouterSettings.BLOCK_SIZE, 0));
    }

    @Test
    void eachWrongElementOfATextInAFileIsSaidWithItsLine() {
        final Exception e =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> read("model: m\nmodels:\n- name=n,foo=1,block-size=x\n"));
        final List<String> said = e.getMessage().lines().toList();
        assertEquals(2, said.size(), e.getMessage());
        assertTrue(said.get(0).contains("kvasir.yaml:3: unknown setting 'foo'"), said.get(0));
        assertTrue(said.get(1).contains("kvasir.yaml:3: block-size=x is"), said.get(1));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "''                    | which is not key=value",
                "n                     | 'n', which is not key=value",
                "name=                 | which is not key=value",
                "'name= '              | not blank",
                "block-size=32         | needs name=",
                "name=n,name=o         | 'name' is given twice",
                "name=n,lora=a,lora-adapters=b | 'lora' and 'lora-adapters' are names of one"
                        + " setting; give 'lora' alone",
                "name=n,blok-size=3    | the nearest is 'block-size'",
                "name=n,block-size=x   | block-size=x is not a number",
                "name=n,block-size=0   | out of range",
                "name=n,port=1         | 'port' is the gateway's",
                "name=n,model=o        | 'model' is the gateway's",
                "name=n,workers=o      | 'workers' is the gateway's",
                "name=n,models=o       | 'models' is the gateway's",
            })
    void aTextThatIsNoModelIsRefused(String text, String part) {
        final Exception e = assertThrows(IllegalArgumentException.class, () -> with(text));
        assertMessage(e, "serve-model=", part);
    }

    @Test
    void aFileHasMappingsWithPathsRelativeToIt() throws IOException {
        final GatewayConfig config =
                read(
                        """
                        model: m
                        tokenizer: models/m
                        models:
                          - name: "n, with a comma"
                            tokenizer: models/n
                            lora: [a, "b;c"]
                            block-size: 32
                          - name: o
                            tokenizer: sim
                        workers:
                          - http://h:1
                          - url: http://h:2
                            model: "n, with a comma"
                          - http://h:3,model=o
                        """);
        final GatewayConfig n = config.models().get(1);
        assertEquals("n, with a comma", n.get(GatewaySettings.MODEL));
        assertEquals(folder.resolve("models/n"), n.get(GatewaySettings.TOKENIZER));
        assertEquals(List.of("a", "b;c"), n.get(GatewaySettings.LORA));
        assertTrue(n.settings().origin(RouterSettings.BLOCK_SIZE).endsWith("kvasir.yaml:7"));
        assertEquals(Path.of("sim"), config.models().get(2).get(GatewaySettings.TOKENIZER));
        assertEquals("o", config.get(GatewaySettings.WORKERS).get(2).model());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "'model: m\nmodels: n'                     | :2: a list is needed",
                "'model: m\nmodels:\n- n'                  | :3: has 'n', which is not key=value",
                "'model: m\nmodels:\n- block-size: 3'      | :3: a model needs name=",
                "'model: m\nmodels:\n- name: n\n  port: 3' | :4: 'port' is the gateway's",
                "'model: m\nmodels:\n- name: n\n  name: o' | :4: 'name' is given twice",
                "'model: m\nmodels:\n- name: n\n  mode: x' | :4: mode=x is none of",
                "'model: m\nmodels:\n- name: n\n  moed: x' | :4: unknown setting 'moed'",
                "'models:\n- name: n'                      | model is not set",
            })
    void complaintsNameFileAndLine(String yaml, String part) {
        assertMessage(assertThrows(IllegalArgumentException.class, () -> read(yaml)), part);
    }

    @Test
    void aNameIsOneModels() {
        assertRefused(with("name=m"), "two models are named 'm'", "serve-model");
        assertRefused(with("name=n", "name=n"), "two models are named 'n'");
        assertRefused(
                with("name=n,lora=m"), "adapter 'm' of model 'n'", "another model", "change lora");
        assertRefused(with("name=m-fr"), "adapter 'm-fr' of model 'm'", "another model");
        assertRefused(
                with("name=n,lora=m-fr"), "adapter 'm-fr' of model 'n'", "adapter of model 'm'");
        with("name=n,lora=n-fr;n-fr;n").build(); // says the same twice
    }

    @Test
    void aWorkerOfTheConfigurationIsOfAModelThatIsServed() {
        assertRefused(
                with("name=n").worker(WorkerConfig.parse("http://h:1,name=w,model=o")),
                "worker 'w' has model=o",
                "m, n",
                "serve-model");
        assertRefused(
                first().worker(WorkerConfig.parse("http://h:1,name=w,model=o")), "model=o", "m");
        first().worker(WorkerConfig.parse("http://h:1,name=w,model=m")).build();
    }

    @Test
    void everyModelHasRoomForWorkersOfItsOwn() {
        final GatewayConfig.Builder config =
                with("name=n,max-workers=1")
                        .set(RouterSettings.MAX_WORKERS, 2)
                        .worker(WorkerConfig.parse("http://h:1,dp=2,events=tcp://h:1"))
                        .worker(WorkerConfig.parse("http://h:2,model=n"))
                        .worker(WorkerConfig.parse("http://h:3,model=n,role=prefill"));
        config.build();
        config.worker(WorkerConfig.parse("http://h:4,model=n"));
        assertRefused(config, "2 workers", "max-workers=1", "of model 'n'");
    }

    @Test
    void twoWorkersOfOneNameAreRefusedWhateverTheirModels() {
        assertRefused(
                with("name=n")
                        .worker(WorkerConfig.parse("http://h:1,name=w"))
                        .worker(WorkerConfig.parse("http://h:2,name=w,model=n")),
                "two workers are named 'w'");
    }

    @Test
    void foldersOfFurtherModelsAreInThatOfTheFirst() {
        final Path counters = Path.of("/counters");
        final Path state = Path.of("/state");
        final Path mapped = Path.of("/mapped");
        final Path journal = Path.of("/journal");
        final List<GatewayConfig> models =
                with("name=prefill", "name=../x", "name=own,counters-dir=/own")
                        .set(RouterSettings.COUNTERS_DIR, counters)
                        .set(RouterSettings.STATE_DIR, state)
                        .set(RouterSettings.STATE_MAPPED_DIR, mapped)
                        .set(RouterSettings.DECISION_JOURNAL_DIR, journal)
                        .build()
                        .models();
        assertEquals(counters, models.get(0).get(RouterSettings.COUNTERS_DIR));
        assertEquals(
                counters.resolve("models/prefill"), models.get(1).get(RouterSettings.COUNTERS_DIR));
        assertEquals(
                state.resolve("models/%2E%2E%2Fx"), models.get(2).get(RouterSettings.STATE_DIR));
        assertEquals(
                mapped.resolve("models/prefill"),
                models.get(1).get(RouterSettings.STATE_MAPPED_DIR));
        assertEquals(
                journal.resolve("models/prefill"),
                models.get(1).get(RouterSettings.DECISION_JOURNAL_DIR));
        assertEquals(Path.of("/own"), models.get(3).get(RouterSettings.COUNTERS_DIR));
        assertEquals(state.resolve("models/own"), models.get(3).get(RouterSettings.STATE_DIR));
        assertNull(with("name=n").build().models().get(1).get(RouterSettings.STATE_DIR));
    }

    @Test
    void everyPoolOfEveryModelSharesItsBookingsUnderAnotherComponent() {
        final Set<String> components = new HashSet<>();
        final List<GatewayConfig> models =
                with(
                                "name=prefill",
                                "name=x",
                                "name=x-prefill",
                                "name=model-x",
                                "name=" + "y".repeat(10_000),
                                "name=z,nats-component=others")
                        .set(GatewaySettings.REPLICA_SYNC, true)
                        .build()
                        .models();
        for (GatewayConfig model : models) {
            assertTrue(components.add(model.replicaComponent(false)));
            assertTrue(components.add(model.replicaComponent(true)));
        }
        assertEquals("backend", models.get(0).replicaComponent(false));
        assertEquals("backend-prefill", models.get(0).replicaComponent(true));
        assertEquals("backend-model-x", models.get(2).replicaComponent(false));
        assertEquals("backend-prefill-model-x", models.get(2).replicaComponent(true));
        assertEquals("others", models.getLast().replicaComponent(false));
        assertEquals("others-prefill", models.getLast().replicaComponent(true));
    }

    @Test
    void bookingsOfTwoModelsUnderOneComponentAreRefused() {
        for (String component : List.of("backend", "backend-prefill", "backend-model-x")) {
            final String spec = "name=n,nats-component=" + component;
            assertRefused(
                    with("name=x", spec).set(GatewaySettings.REPLICA_SYNC, true),
                    "component '",
                    "namespace 'dynamo'",
                    "nats-component");
            with("name=x", spec).build();
            with("name=x", spec + ",nats-namespace=other")
                    .set(GatewaySettings.REPLICA_SYNC, true)
                    .build();
        }
    }

    @Test
    void theEnvironmentNamesModelsAsWords() {
        final GatewayConfig config =
                GatewayConfig.builder()
                        .environment(
                                Map.of(
                                        "KVASIR_MODEL", "m",
                                        "KVASIR_SERVE_MODEL", "name=n,block-size=32 name=o"))
                        .build();
        assertEquals("m, n, o", config.modelNames());
        assertEquals(32, config.models().get(1).get(RouterSettings.BLOCK_SIZE));
    }

    @Test
    void whatIsAModelsOwnIsFromWhereTheModelIs() throws IOException {
        final String spec = "name=n,overlap-weight=4";
        assertFrom(Source.FLAG, "--serve-model", with(spec).build());
        assertFrom(
                Source.ENVIRONMENT,
                "KVASIR_SERVE_MODEL",
                first().environment(Map.of("KVASIR_SERVE_MODEL", spec)).build());
        final String file = folder.resolve("kvasir.yaml").toString();
        assertFrom(
                Source.FILE,
                file + ":3",
                read("model: m\nmodels:\n  - {name: n, overlap-weight: 4}\n"));
        assertFrom(Source.FILE, file + ":2", read("model: m\nmodels: ['" + spec + "']\n"));
        assertFrom(
                Source.CODE,
                "code",
                first().set(GatewaySettings.MODELS, List.of(ModelConfig.parse(spec))).build());
    }

    private static void assertFrom(Source source, String origin, GatewayConfig config) {
        final Settings n = config.models().get(1).settings();
        assertEquals(4.0, n.get(RouterSettings.OVERLAP_WEIGHT));
        assertEquals(source, n.source(RouterSettings.OVERLAP_WEIGHT));
        assertEquals(origin, n.origin(RouterSettings.OVERLAP_WEIGHT));
        assertEquals(List.of("4"), n.texts(RouterSettings.OVERLAP_WEIGHT));
    }

    @Test
    void aFolderThatAModelHasBelowTheGatewaysIsFromWhereThatIs() {
        final Settings n =
                with("name=n")
                        .flag(RouterSettings.STATE_DIR, List.of("/s"))
                        .build()
                        .models()
                        .get(1)
                        .settings();
        assertEquals(Source.FLAG, n.source(RouterSettings.STATE_DIR));
        assertEquals("--state-dir", n.origin(RouterSettings.STATE_DIR));
        assertNotEquals(Path.of("/s"), n.get(RouterSettings.STATE_DIR));
    }
}
