package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class RelayCommandTest {
    private static final String ENGINE = "relay --engine tcp://127.0.0.1:1 --block-size 16 ";

    private static CommandRun run(String line) {
        return CommandRun.of(line.split(" ", -1));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "relay",
                "relay --engine tcp://127.0.0.1:1",
                ENGINE + "--dp-rank 0",
                ENGINE + "--nats nats://x --bind tcp://*:0",
                ENGINE + "--bind tcp://127.0.0.1:0 --jetstream",
                ENGINE + "--bind tcp://127.0.0.1:0 --connect tcp://127.0.0.1:1",
                ENGINE + "--connect tcp://127.0.0.1:1 --jetstream",
                ENGINE + "--bind tcp://127.0.0.1:0 --dp-rank -1",
                ENGINE + "--nats nats://127.0.0.1:1 --jetstream --stream-replicas 6",
                ENGINE + "--nats nats://127.0.0.1:1 --envelopes",
                ENGINE + "--nats nats://127.0.0.1:1 --jetstream --old-subject --envelopes",
                ENGINE + "--nats nats://127.0.0.1:1 --local-indexer-blocks 0",
                ENGINE + "--bind tcp://127.0.0.1:0 --worker-id 18446744073709551616",
                "relay --engine tcp://127.0.0.1:1 --block-size 0 --bind tcp://127.0.0.1:0"
            })
    void aWrongCommandLineIsRefused(String line) {
        final CommandRun run = run(line);
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(run.err().contains("kvasir relay"), run.err());
    }

    @Test
    void aNatsThatIsNotThereIsNamedInOneLine() {
        final CommandRun run = run(ENGINE + "--nats nats://127.0.0.1:1");
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains("cannot publish: nats://127.0.0.1:1"), run.err());
    }

    @Test
    void aFileOfCredentialsThatIsMissingIsNamed() {
        final CommandRun run =
                run(ENGINE + "--nats nats://127.0.0.1:1 --credentials no/such.creds");
        assertEquals(3, run.exitCode(), run.err());
        assertTrue(run.err().contains("no/such.creds"), run.err());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--bind tcp://127.0.0.1:0 --engine nowhere | --engine | nowhere",
                "--bind tcp://127.0.0.1:0 --engine tcp://*:5557 | --engine | tcp://*:5557",
                "--bind tcp://127.0.0.1:0 --engine tcp://h:1 --replay nowhere | --replay | nowhere",
                "--engine tcp://h:1 --bind tcp://h:99999 | --bind | tcp://h:99999",
                "--engine tcp://h:1 --connect nowhere | --connect | nowhere",
                "--engine tcp://h:1 --connect tcp://h:1,tcp://*:5555 | --connect | tcp://*:5555"
            })
    void anAddressThatIsNoneIsAWrongCommandLineWithItsOption(
            String options, String option, String address) {
        final CommandRun run = run("relay --block-size 16 " + options);
        assertEquals(2, run.exitCode(), run.err());
        assertTrue(
                run.err().contains(": " + option + ": not a usable ZMQ address: " + address + ": "),
                run.err());
        assertEquals("", run.out());
    }
}
