package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

class DisaggregationTest {
    private static Disaggregation of(String flag) {
        return WorkerConfig.parse(flag).disaggregation();
    }

    @ParameterizedTest
    @CsvSource({
        "'', BOTH, VLLM, ",
        "',role=both', BOTH, VLLM, ",
        "',role=prefill', PREFILL, VLLM, ",
        "',role=decode,handoff=trtllm', DECODE, TRTLLM, ",
        "',role=decode,handoff=sglang', DECODE, SGLANG, ",
        "',role=prefill,handoff=sglang', PREFILL, SGLANG, 10.0.0.7:8998",
        "',handoff=sglang', BOTH, SGLANG, 10.0.0.7:8998",
        "',role=prefill,bootstrap=boot.example:1', PREFILL, SGLANG, boot.example:1",
        "',role=prefill,bootstrap=[fd00::1]:65535', PREFILL, SGLANG, [fd00::1]:65535",
        "',bootstrap=a-b_c:9,handoff=sglang', BOTH, SGLANG, a-b_c:9",
    })
    void whatIsNotGivenFollowsFromTheRest(
            String keys, WorkerRole role, HandoffProtocol handoff, String bootstrap) {
        final Disaggregation worker = of("http://10.0.0.7:8000" + keys);
        assertEquals(role, worker.role());
        assertEquals(handoff, worker.handoff());
        assertEquals(bootstrap, worker.bootstrap() == null ? null : worker.bootstrap().toString());
    }

    @Test
    void theUsualBootstrapServerIsBesideTheWorker() {
        assertEquals(
                new BootstrapAddress("[::1]", 8998),
                of("http://[::1]:8000,role=prefill,handoff=sglang").bootstrap());
        assertNull(of("http://[::1]:8000,role=decode,handoff=sglang").bootstrap());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "role=                                | is not key=value",
                "role=Prefill                         | role=Prefill; one of: both, prefill,"
                        + " decode",
                "role=cook                            | role=cook; one of: both, prefill, decode",
                "handoff=mail                         | handoff=mail; one of: vllm, sglang, trtllm",
                "role=decode,bootstrap=h:1            | bootstrap=h:1 with role=decode",
                "handoff=vllm,bootstrap=h:1           | bootstrap=h:1 with handoff=vllm",
                "handoff=trtllm,bootstrap=h:1         | bootstrap=h:1 with handoff=trtllm",
                "bootstrap=h                          | bootstrap=h must be HOST:PORT",
                "bootstrap=:1                         | bootstrap=:1 must be HOST:PORT",
                "bootstrap=fd00::1:8998               | must be HOST:PORT, with [brackets]",
                "bootstrap=h:0                        | bootstrap=h:0: a port is 1 to 65535",
                "bootstrap=h:65536                    | bootstrap=h:65536: a port is 1 to 65535",
                "bootstrap=h:99999999999              | must be HOST:PORT",
                "bootstrap=http://h:1                 | must be HOST:PORT",
                "bootstrap=a b:1                      | must be HOST:PORT",
                "bootstrap=[h]:1                      | must be HOST:PORT",
                "role=both,role=decode                | role is given twice",
                "labels=zone                          | 'zone' is not key:value",
                "labels=zone:a;                       | '' is not key:value",
                "labels=zone:                         | 'zone:' is not key:value",
                "labels=:a                            | ':a' is not key:value",
                "labels=zone:a b                      | 'zone:a b' is not key:value",
                "labels=zone:a:b                      | 'zone:a:b' is not key:value",
                "labels=zone:a;zone:b                 | 'zone' is given twice",
            })
    void complaintsNameTheKeyAndItsValue(String keys, String message) {
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> of("http://h:1," + keys));
        assertTrue(e.getMessage().contains(message), e.getMessage());
    }

    @Test
    void labelsAreKeptInTheirOrder() {
        assertEquals(Map.of(), WorkerConfig.parse("http://h:1").labels());
        final Map<String, String> labels =
                WorkerConfig.parse("http://h:1,labels=zone:eu-1.a;rack:7;k8s.io/host:n_1").labels();
        assertEquals(List.of("zone", "rack", "k8s.io/host"), List.copyOf(labels.keySet()));
        assertEquals(List.of("eu-1.a", "7", "n_1"), List.copyOf(labels.values()));
        assertThrows(UnsupportedOperationException.class, () -> labels.put("a", "b"));
    }

    @Test
    void labelsAreFewAndShort() {
        assertEquals(16, WorkerConfig.parse("http://h:1,labels=" + labels(16)).labels().size());
        final IllegalArgumentException many =
                assertThrows(
                        IllegalArgumentException.class,
                        () -> WorkerConfig.parse("http://h:1,labels=" + labels(17)));
        assertTrue(many.getMessage().contains("17 are more than 16"), many.getMessage());
        assertThrows(
                IllegalArgumentException.class,
                () -> WorkerConfig.parse("http://h:1,labels=zone:" + "a".repeat(64)));
        assertThrows(
                IllegalArgumentException.class,
                () -> WorkerConfig.parse("http://h:1,labels=" + labels(10_000)));
    }

    private static String labels(int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> "k" + i + ":v")
                .collect(Collectors.joining(";"));
    }

    @Test
    void workersThatDifferInRoleHandoffOrLabelsAreOthers() {
        final List<WorkerConfig> workers =
                List.of(
                        WorkerConfig.parse("http://h:1"),
                        WorkerConfig.parse("http://h:1,role=prefill"),
                        WorkerConfig.parse("http://h:1,handoff=trtllm"),
                        WorkerConfig.parse("http://h:1,bootstrap=h:1"),
                        WorkerConfig.parse("http://h:1,bootstrap=h:2"),
                        WorkerConfig.parse("http://h:1,labels=a:b"));
        assertEquals(workers.size(), workers.stream().distinct().count());
        assertEquals(workers.getFirst(), WorkerConfig.parse("http://h:1,role=both,handoff=vllm"));
    }
}
