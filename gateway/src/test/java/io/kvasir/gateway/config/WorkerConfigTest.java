package io.kvasir.gateway.config;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.router.EventPlaneWorker;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;

class WorkerConfigTest {
    @Test
    void readsTheFullForm() {
        final WorkerConfig worker =
                WorkerConfig.parse(
                        "http://10.0.0.7:8000/,name=a,events=tcp://10.0.0.7:5557,replay=tcp://10.0.0.7:5567,"
                            + "dp=2,removals=last-copy,bind=true,topic=kv");
        assertEquals("a", worker.name());
        assertEquals(URI.create("http://10.0.0.7:8000"), worker.url());
        assertEquals("tcp://10.0.0.7:5557", worker.events(0));
        assertEquals("tcp://10.0.0.7:5558", worker.events(1));
        assertEquals("tcp://10.0.0.7:5568", worker.replay(1));
        assertEquals(2, worker.dataParallelSize());
        assertEquals(RemovalRule.LAST_COPY, worker.removals());
        assertTrue(worker.eventsBind());
        assertEquals("kv", worker.topic());
    }

    @Test
    void whatItIsCalledOnAnEventPlaneCountsRanksToo() {
        final WorkerConfig worker =
                WorkerConfig.parse(
                        "http://h:1,dp=2,event-worker=18446744073709551615,event-rank=4");
        assertEquals(new EventPlaneWorker(-1, 4), worker.plane(0));
        assertEquals(new EventPlaneWorker(-1, 5), worker.plane(1));
        assertEquals(
                new EventPlaneWorker(7, 0),
                WorkerConfig.parse("http://h:1,event-worker=7").plane(0));
        assertNull(WorkerConfig.parse("http://h:1").plane(0));
    }

    @Test
    void theRankOfItsEventsIsZeroUnlessItIsGiven() {
        final WorkerConfig worker =
                WorkerConfig.parse("http://h:1,dp=2,events=tcp://h:7,event-rank=2");
        assertEquals(2, worker.eventRank());
        assertEquals("tcp://h:7", worker.events(0)); // an address is that of its rank 0
        assertEquals(2, worker.withModel("m").eventRank());
        assertEquals(0, WorkerConfig.parse("http://h:1,events=tcp://h:7").eventRank());
    }

    @Test
    void aUrlIsEnough() {
        final WorkerConfig worker = WorkerConfig.parse("http://h:1");
        assertEquals("h:1", worker.name());
        assertNull(worker.events(0));
        assertNull(worker.replay(0));
        assertEquals(1, worker.dataParallelSize());
        assertEquals(RemovalRule.AUTO, worker.removals());
        assertFalse(worker.eventsBind());
        assertEquals(WorkerInput.TEXT, worker.input());
        assertEquals(WorkerInput.TOKENS, WorkerConfig.parse("http://h:1,input=tokens").input());
        assertEquals(worker, WorkerConfig.parse("url=http://h:1"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "http://h:1,evnts=tcp://a:1   | unknown key 'evnts'; known keys: [url, name,"
                        + " events",
                "http://h:0                   | url=http://h:0 has port 0, which is not within",
                "http://h:70000               | url=http://h:70000 has port 70000, which is",
                "http://vllm_0:1              | with a host whose name has no '_'",
                "http://h:1,dp=x              | dp=x must be a whole number",
                "http://h:1,dp=0              | dp=0 must be at least 1",
                "http://h:1,bind=yes          | bind=yes must be true or false",
                "http://h:1,removals=none     | removals=none; one of: physical, last-copy, auto",
                "http://h:1,events=h:1        | events: not a usable ZMQ address: h:1: it must",
                "http://h:1,events=tcp://*:7  | tcp://*:7: host and port are needed to connect",
                "http://h:1,events=tcp://a:0  | tcp://a:0: host and port are needed to connect",
                "http://h:1,events=tcp://::1:7 | tcp://::1:7: an IPv6 address stands in brackets",
                "http://h:1,events=tcp://a:65535,dp=2 | tcp://a:65536: its port must be 1 to",
                "http://h:1,events=tcp://*:7,bind=true,replay=tcp://*:8 | replay: not a usable ZMQ",
                "http://h:1,events=tcp://*,bind=true | events: not a usable ZMQ address: tcp://*",
                "http://h:1,replay=tcp://h:1  | replay=tcp://h:1 without events",
                "http://h:1,event-rank=1      | event-rank=1 without events and event-worker",
                "http://h:1,event-worker=w7   | event-worker=w7 must be a whole number of 64 bits",
                "http://h:1,event-worker=-1   | event-worker=-1 must be a whole number of 64 bits",
                "http://h:1,event-worker=1,event-rank=-1 | event-rank=-1 must not be negative",
                "http://h:1,event-worker=1,events=tcp://a:1 | events come from one of both",
                "http://h:1,input=ids         | input=ids; one of: text, tokens",
                "http://h:1,input=tokens,role=prefill | input=tokens with role=prefill",
                "http://h:1,input=tokens,role=decode  | use role=both or input=text",
                "http://h:1,name              | 'name' is not key=value",
                "http://h:1,name=a,name=b     | name is given twice",
                "http://h:1,name=a\ud83d      | half of a surrogate pair",
                "h:1                          | 'h:1' is no URL: http://host:port or https://host",
                "name=a                       | no url",
                "ftp://h:1                    | url=ftp://h:1 must be http://host:port",
                "http://h:1/v1                | without /v1",
                "http://h:1/a?version=2       | must have no query and no fragment",
                "http://h:1#a                 | must have no query and no fragment",
                "http://h:1,events=ipc://x,dp=2 | has no port to count dp ranks from",
            })
    void complaintsNameTheKeyAndItsValue(String flag, String message) {
        final IllegalArgumentException e =
                assertThrows(IllegalArgumentException.class, () -> WorkerConfig.parse(flag));
        assertTrue(e.getMessage().contains(message), e.getMessage());
        assertTrue(e.getMessage().contains(flag), e.getMessage());
    }

    @Test
    void allThatIsWrongIsNamedInALineOfItsOwn() {
        final String flag = "http://h:0,evnts=tcp://a:1,dp=0,bind,removals=none";
        final List<String> lines =
                assertThrows(IllegalArgumentException.class, () -> WorkerConfig.parse(flag))
                        .getMessage()
                        .lines()
                        .toList();
        final List<String> parts =
                List.of(
                        "'bind' is not key=value",
                        "unknown key 'evnts'",
                        "has port 0, which is not within 1..65535",
                        "dp=0 must be at least 1",
                        "removals=none");
        assertEquals(parts.size(), lines.size(), lines::toString);
        for (int i = 0; i < parts.size(); i++) {
            assertTrue(lines.get(i).startsWith("worker '" + flag + "': "), lines.get(i));
            assertTrue(lines.get(i).contains(parts.get(i)), lines.get(i));
        }
    }

    @Test
    void allThatIsWrongInAFileOfWorkersIsNamedWithItsLine() {
        final String yaml =
                """
                - http://h:1,dp=x,bind=yes
                - url: http://h:2
                  evnts: tcp://a:1
                  removals: none
                  generation: first
                - url: http://h:3
                - http://h:4,taints
                """;
        final List<String> lines =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        ConfigFile.workers(
                                                Path.of("f"),
                                                yaml.getBytes(StandardCharsets.UTF_8),
                                                "m"))
                        .getMessage()
                        .lines()
                        .toList();
        final List<String> parts =
                List.of(
                        "f:1: worker 'http://h:1,dp=x,bind=yes': bind=yes",
                        "f:1: worker 'http://h:1,dp=x,bind=yes': dp=x",
                        "f:3: unknown key 'evnts'",
                        "f:2: generation=first",
                        "f:2: removals=none",
                        "f:7: worker 'http://h:4,taints': 'taints' is not key=value");
        assertEquals(parts.size(), lines.size(), lines::toString);
        for (int i = 0; i < parts.size(); i++) {
            assertTrue(lines.get(i).startsWith(parts.get(i)), lines.get(i));
        }
    }

    @Test
    void whatItsEngineCanTakeIsSaidOrNot() {
        assertEquals(WorkerLimits.UNKNOWN, WorkerConfig.parse("http://h:1").limits());
        assertEquals(
                new WorkerLimits(100, 8_192, 256),
                WorkerConfig.parse(
                                "http://h:1,kv-blocks=100,max-batched-tokens=8192,max-requests=256")
                        .limits());
        for (String wrong : new String[] {"kv-blocks=-1", "max-batched-tokens=many"}) {
            final IllegalArgumentException refused =
                    assertThrows(
                            IllegalArgumentException.class,
                            () -> WorkerConfig.parse("http://h:1," + wrong));
            assertTrue(refused.getMessage().contains(wrong), refused.getMessage());
        }
    }
}
