package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.ExitCode;

import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.file.Path;
import java.util.List;

/** Each is refused before anything is done, by exit code 2 and one line that says which option. */
class WrongCommandLineTest {
    private static final String SYNC = "slots --replica-sync --nats nats://127.0.0.1:1 ";

    @TempDir private Path dir;

    private static void assertRefused(String line, String message) {
        final List<String> words = List.of(line.split(" ", -1));
        final CommandRun run = CommandRun.of(words.toArray(String[]::new));
        assertEquals(ExitCode.USAGE, run.exitCode(), run.err());
        final List<String> lines = run.err().lines().toList();
        assertEquals(2, lines.size(), run.err());
        assertEquals(message, lines.getFirst().replaceFirst("^kvasir [a-z ]+: ", ""));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "top --url http://127.0.0.1:1 --once --watch 1"
                        + " | --once and --watch 1: one of them",
                "top --url http://127.0.0.1:1 --watch 2.5 --once"
                        + " | --once and --watch 2.5: one of them",
                "demo --small --runs 2 | --runs is for --disagg, which is not given",
                "demo --small --harm-weight 1 | --harm-weight is for --disagg, which is not given",
                "bench kvops none --forks 0 --jvm-option -Xmx1g"
                        + " | --jvm-option is for forks, of which --forks 0 has none",
                "settings --url http://127.0.0.1:1 mode=kv temperature=0.5 temperature=0.6"
                        + " | 'temperature' is given twice; one value would be dropped",
                "serve --router-ttl-secs 4 --router-ttl 5 | --router-ttl-secs 4 and --router-ttl 5"
                        + " are names of one option and differ; give --ttl-secs alone",
                "serve --ttl-secs 4 --router-ttl=5 | --ttl-secs 4 and --router-ttl 5 are names of"
                        + " one option and differ; give --ttl-secs alone",
                "serve --no-kv-events --router-kv-events | --no-kv-events and --router-kv-events"
                        + " are names of one option and differ; give --kv-events alone",
                "serve --worker http://u:p@h:1 --workers http://h:2 --worker http://h:3 | --worker"
                        + " http://***@h:1 --worker http://h:3 and --workers http://h:2 are names"
                        + " of one option and differ; give --worker alone",
                "relay --engine tcp://h:1 --block-size 4 --bind tcp://h:2 --trust-store f"
                        + " | --trust-store needs --nats: ZMQ does without it",
                "relay --engine tcp://h:1 --block-size 4 --connect tcp://h:2 --key-store f"
                        + " | --key-store needs --nats: ZMQ does without it",
                "relay --engine tcp://h:1 --block-size 4 --bind tcp://h:2 --credentials f"
                        + " | --credentials needs --nats: ZMQ does without it",
                "relay --engine tcp://h:1 --block-size 4 --bind tcp://h:2 --stream-replicas 3"
                        + " | --stream-replicas needs --jetstream",
                "relay --engine tcp://h:1 --block-size 4 --bind tcp://h:2 --no-local-indexer"
                        + " --local-indexer-blocks 9 | --local-indexer-blocks is for the local"
                        + " indexer, which --no-local-indexer does without",
                "relay --engine tcp://h:1 --block-size 4 --nats nats://h:2 --jetstream"
                        + " --local-indexer-blocks 9 | --local-indexer-blocks is for the local"
                        + " indexer, which --jetstream does without",
                "sim --role decode --kv-nixl | --kv-nixl is for --kv-bytes, which is not given",
                "sim --kv-layers 4 | --kv-layers is for --kv-bytes, which is not given",
                "sim --kv-row-bytes 8 | --kv-row-bytes is for --kv-bytes, which is not given",
                "serve --ttl-secs 5 --router-ttl 5 | no model; give --model NAME, or model in a"
                        + " file, as the workers call it",
            })
    void optionsOfWhichOneWouldHaveNoEffect(String line, String message) {
        assertRefused(line, message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "replay --trace none --slots 0 | --slots 0 must be at least 1",
                "replay --trace none --prefill-rate 0 | --prefill-rate 0 must be positive and"
                        + " finite",
                "replay --trace none --prefill-rate NaN | --prefill-rate NaN must be positive and"
                        + " finite",
                "replay --trace none --inter-token-ms -1 | --inter-token-ms -1 must be 0 or more,"
                        + " and finite",
                "replay --trace none --inter-token-ms NaN | --inter-token-ms NaN must be 0 or more,"
                        + " and finite",
                "replay --trace none --vocabulary 1 | --vocabulary 1 is not within 2..65536",
                "replay --trace none --overlap-weight -1 | --overlap-weight -1 must be 0 or more,"
                        + " and finite",
                "replay --trace none --overlap-weight NaN | --overlap-weight NaN must be 0 or more,"
                        + " and finite",
                "replay --trace none --temperature NaN | --temperature NaN must be 0 or more, and"
                        + " finite",
                "replay --trace none --block-size 0 | --block-size 0 must be at least 1",
                "replay --trace none --blocks 0 | --blocks 0 must be at least 1",
                "replay --trace none --workers 1025 | --workers 1025 is not within 1..1024",
                "replay --trace none --url http://h:99999 | --url http://h:99999 has port 99999,"
                        + " which is not within 1..65535",
                "replay --trace none --url h:1 | --url h:1 must be http://host:port or"
                        + " https://host:port",
                "status --url 127.0.0.1:9000 | Invalid value for option '--url': '127.0.0.1:9000'"
                        + " is no URL, such as http://host:port",
                "status --url http:// | Invalid value for option '--url': 'http://' is no URL, such"
                        + " as http://host:port",
                "top --url http://h:1?x=1 | --url http://h:1?x=1 must be http://host:port or"
                        + " https://host:port, without a query",
                "explain --url http://u:p@h:1/ | --url http://***@h:1/ must have no user: the"
                        + " token is for --token-file",
                "register --model m --name w --nats nats://h --url 127.0.0.1:9000 |"
                        + " Invalid value for option '--url': '127.0.0.1:9000' is no URL, such as"
                        + " http://host:port",
                "register --model m --name w --etcd 127.0.0.1:9 --url http://h:1 | Invalid value"
                        + " for option '--etcd' (URLS): '127.0.0.1:9' is no URL, such as"
                        + " http://host:port",
                "register --model= --name w --nats nats://h --url http://h:1 | --model is empty",
                "register --model m --name a/b --nats nats://h --url http://h:1 | instance=a/b must"
                        + " have 1 to 200 characters, no blank, control character, comma or slash"
                        + " among them",
                "simulate --agents --slots 0 | --slots 0 must be at least 1",
                "simulate --agents --block-size 0 | --block-size 0 must be at least 1",
                "simulate --agents --prefill-rate 0 | --prefill-rate 0 must be positive and finite",
                "demo --port 99999 | --port 99999 is not within 0..65535",
                "demo --disagg --harm-weight NaN | --harm-weight NaN is not within 0..1000",
                "demo --disagg --runs 0 | --runs 0 must be at least 1",
                "hash --block-size 4 --tokens 1,x | --tokens: token 1 is 'x', not a number in"
                        + " 0..4294967295",
                "bench kvops none --room 1e400 | --room 1e400 must be positive and finite",
                "bench kvops none --passes 0 | --passes 0 must be at least 1",
                "bench kvops none --limit-seconds NaN | --limit-seconds NaN must be 0 or more, and"
                        + " finite",
                "sim --events-port 65535 | --events-port 65535 is not within 0..65535 with all 2"
                        + " ports from it on",
                "sim --events-port -2 | --events-port -2 is not within 0..65535 with all 2 ports"
                        + " from it on",
                "sim --host= | --host is empty",
                "slots --host= | --host is empty",
                "select --host= | --host is empty",
                "indexer --host= | --host is empty",
                "sim --count 3 --port 65534 | --port 65534 is not within 0..65535 with all 3 ports"
                        + " from it on",
                "sim --speed-up 0 | --speed-up 0 must be positive and finite",
                "sim --dp 0 | --dp 0 must be at least 1",
                "sim --kv-rate 0 | --kv-rate 0 must be positive and finite",
                "sim --kv-lease-s -1 | --kv-lease-s -1 is not within 0..1000000000",
                "sim --kv-bytes --kv-row-bytes 7 | --kv-row-bytes 7 must be a multiple of 8",
                "sim --max-model-len -1 | --max-model-len -1 must be at least 2, or 0",
                "status --url http://h:99999 | --url http://h:99999 has port 99999, which is"
                        + " not within 1..65535",
                "slots --max-requests 0 | --max-requests 0 is not within 1..1073741824",
                "slots --max-workers 65537 | --max-workers 65537 is not within 1..65536",
                "slots --request-timeout-secs -1 | --request-timeout-secs -1 is not within"
                        + " 0..1000000000",
                "select --request-timeout-secs -1 | --request-timeout-secs -1 is not within"
                        + " 0..1000000000",
                "select --session-affinity-ttl-secs -1 | --session-affinity-ttl-secs -1 is not"
                        + " within 0..31536000",
                "select --selection-cache-ttl-secs 0 | --selection-cache-ttl-secs 0 is not within"
                        + " 1..1000000000",
                "select --index-bytes -1 | --index-bytes -1 must be at least 0",
                "indexer --index-bytes -1 | --index-bytes -1 must be at least 0",
                "indexer --max-workers 0 | --max-workers 0 is not within 1..65536",
                "sim --max-model-len 33 --blocks 2 | --max-model-len 33 is more than the 32 tokens"
                        + " of --blocks 2 of --block-size 16",
                "sim --blocks 1 --block-size 1 | --blocks 1 of --block-size 1 must have at least 2"
                        + " tokens",
                "simulate --agents --blocks 1 --block-size 1 | --blocks 1 of --block-size 1 must"
                        + " have at least 2 tokens",
                "simulate --agents --event-delay-ms NaN | --event-delay-ms NaN is not within"
                        + " 0..3600000",
                SYNC + "--replica-max-requests 0 | --replica-max-requests 0 must be at least 1",
                SYNC + "--replica-id 0 | --replica-id 0 must be at least 1",
                SYNC + "--replica-digest-ms 9 | --replica-digest-ms 9 is not within 10..2147483646",
                SYNC
                        + "--replica-lease-ms 1000 | --replica-lease-ms 1000 is not within"
                        + " 1001..2147483647",
                SYNC + "--nats-namespace= | --nats-namespace is empty",
                SYNC + "--nats-component= | --nats-component is empty",
                "truth none none --block-size 4 --show -1 | --show -1 must be at least 0",
            })
    void valuesOutOfRange(String line, String message) {
        assertRefused(line, message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "sim --handoff foo | --handoff': 'foo' is none of: vllm, sglang, trtllm",
                "sim --role Foo | --role': 'Foo' is none of: both, prefill, decode",
                "register --role x | --role': 'x' is none of: both, prefill, decode",
                "register --input x | --input': 'x' is none of: tokens, text",
                "select --session-affinity-mode x | --session-affinity-mode': 'x' is none"
                        + " of: hard, soft",
                "bench kvops none --mode x | --mode': 'x' is none of: inorder, events, beside,"
                        + " openloop",
                "nixl bench --transport x | --transport': 'x' is none of: nixl, loopback",
                "nixl bench --operation x | --operation': 'x' is none of: read, write",
            })
    void valuesThatAreNoneOfThoseThatAreListedInLowerCase(String line, String message) {
        assertRefused(line, "Invalid value for option '" + message);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "bench generate --out none/o --trace none --speedup 0 | --speedup out of range:"
                        + " value=0.0, must be above 0 and finite",
                "bench generate --out none/o --trace none --speedup -1 | --speedup out of range:"
                        + " value=-1.0, must be above 0 and finite",
                "bench generate --out none/o --trace none --speedup Infinity | --speedup out of"
                        + " range: value=Infinity, must be above 0 and finite",
                "bench generate --out none/o --trace none --speedup NaN | --speedup out of range:"
                        + " value=NaN, must be above 0 and finite",
                "bench generate --out none/o --trace none --ts-us 0 | --ts-us out of range:"
                        + " value=0.0, must be above 0 and finite",
                "bench generate --out none/o --trace none --ts-us Infinity | --ts-us out of range:"
                        + " value=Infinity, must be above 0 and finite",
                "bench generate --out none/o --trace none --prefill-rate 0 | --prefill-rate out of"
                        + " range: value=0.0, must be above 0 and finite",
                "bench generate --out none/o --trace none --prefill-rate Infinity | --prefill-rate"
                        + " out of range: value=Infinity, must be above 0 and finite",
                "bench generate --out none/o --trace none --itl-ms Infinity | --itl-ms out of"
                        + " range: value=Infinity, must be 0 or more and finite",
                "bench generate --out none/o --trace none --itl-ms -1 | --itl-ms out of range:"
                        + " value=-1.0, must be 0 or more and finite",
                "bench generate --out none/o --trace none --overlap-weight Infinity |"
                        + " --overlap-weight out of range: value=Infinity, must be 0..1000000000",
                "bench generate --out none/o --trace none --overlap-weight NaN | --overlap-weight"
                        + " out of range: value=NaN, must be 0..1000000000",
                "bench generate --out none/o --trace none --capacity 0 | --capacity out of range:"
                        + " value=0, must be at least 1",
                "bench generate --out none/o --trace none --dup 257 | --dup out of range:"
                        + " value=257, must be 1..256",
                "bench generate --out none/o --trace none --chunk-tokens 0 | --chunk-tokens out of"
                        + " range: value=0, must be at least 1",
                "bench generate --out none/o --trace none --limit 0 | --limit 0 must be at least 1",
                "bench generate --out none/o --trace none --decode 2 | --decode 2 must be 0 or 1",
                "bench generate --out none/o --multi-turn --rate Infinity | --rate out of range:"
                        + " value=Infinity, must be above 0 and finite",
                "bench generate --out none/o --multi-turn --rate 0 | --rate out of range:"
                        + " value=0.0, must be above 0 and finite",
                "bench generate --out none/o --multi-turn --rate 1e-300 | a time of the stream"
                        + " would be beyond 2^53 us; an option of times or rates is too far out",
                "bench generate --out none/o --multi-turn --think-seconds Infinity |"
                    + " --think-seconds out of range: value=Infinity, must be 0 or more and finite",
                "bench generate --out none/o --multi-turn --turns Infinity | --turns out of range:"
                        + " value=Infinity, must be 1 or more and finite",
                "bench generate --out none/o --multi-turn --turns 0 | --turns out of range:"
                        + " value=0.0, must be 1 or more and finite",
                "bench generate --out none/o --multi-turn --branch NaN | --branch out of range:"
                        + " value=NaN, must be 0..1",
                "bench generate --out none/o --multi-turn --hit-rate NaN | --hit-rate NaN is not"
                        + " between 0 and 1",
                "bench generate --out none/o --multi-turn --prompt-blocks 2147483647 |"
                        + " --prompt-blocks out of range: value=2147483647, must be 1..8192",
                "bench generate --out none/o --multi-turn --system-blocks 2147483647 |"
                        + " --system-blocks out of range: value=2147483647, must be 1..8192",
                "bench generate --out none/o --multi-turn --answer-blocks 0 | --answer-blocks out"
                        + " of range: value=0, must be 1..8192",
                "bench generate --out none/o --multi-turn --system-prompts 2147483647 |"
                        + " --system-prompts out of range: value=2147483647, must be 1..65536",
                "bench generate --out none/o --multi-turn --requests 0 | --requests out of range:"
                        + " value=0, must be at least 1",
                "bench generate --out none/o --multi-turn --block 2000000000 | --block"
                        + " 2000000000 is not within 1..131072",
            })
    void valuesOutOfRangeOfAStreamToBeMade(String line, String message) {
        assertRefused(line.replace("none/o", dir.resolve("o").toString()), message);
    }
}
