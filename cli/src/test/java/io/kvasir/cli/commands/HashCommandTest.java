package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.CommandRun;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The published hash vectors of Dynamo's scheme, through the command. */
class HashCommandTest {
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "1,2,3,4 | 4 | | | 0 cb38e4d7fb2dca5c cb38e4d7fb2dca5c",
                "1,2,3,4,5,6,7,8 | 4 | | | 0 cb38e4d7fb2dca5c cb38e4d7fb2dca5c;"
                        + "1 e8d3ec39b907b74c 44a2b2379d6d3c3d",
                "1 2 3 4 5 6 7 8 | 4 | my-lora | | 0 d97c824a0d4bdab1 d97c824a0d4bdab1;"
                        + "1 6de6cbec6a335efe d6eb73bf819c8ca5",
                "[1, 2, 3, 4, 5, 6, 7, 8] | 4 | | tenant-a | 0 4fa3e8097233e995 4fa3e8097233e995;"
                        + "1 9b7651d1fc728ccb 0eef8d1bc8240aff",
                "4294967295,4294967295,4294967295,4294967295 | 4 | | |"
                        + " 0 ac3b1b1159a1e879 ac3b1b1159a1e879",
                "1,2,3,4,5,6,7 | 4 | | | 0 cb38e4d7fb2dca5c cb38e4d7fb2dca5c",
                "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 | 16 | | | 0 4ca6490661395090 4ca6490661395090",
                "9,10,11,12 | 4 | my-lora | | 0 59563a3ec2dcb3c3 59563a3ec2dcb3c3",
            })
    void printsIndexLocalAndSequenceHashOfEachFullBlock(
            String tokens, String blockSize, String lora, String salt, String expected) {
        final List<String> args =
                new ArrayList<>(List.of("hash", "--block-size", blockSize, "--tokens", tokens));
        if (lora != null) {
            args.addAll(List.of("--lora", lora));
        }
        if (salt != null) {
            args.addAll(List.of("--salt", salt));
        }
        final CommandRun run = CommandRun.of(args.toArray(String[]::new));
        assertEquals(0, run.exitCode(), run.err());
        assertEquals(List.of(expected.split(";", -1)), run.out().lines().toList());
    }

    @Test
    void readsAFileWithAMarkOfTheByteOrderAndPrintsJson(@TempDir Path dir) throws IOException {
        final Path file = dir.resolve("tokens.json");
        Files.writeString(file, "\ufeff[1,2,3,4,\n5,6,7,8,9]\n");
        final CommandRun run =
                CommandRun.of("hash", "--block-size=4", "--tokens-file=" + file, "--json");
        assertEquals(0, run.exitCode(), run.err());
        final JsonNode json = Json.MAPPER.readTree(run.out());
        assertEquals(9, json.get("tokens").asInt());
        assertEquals(2, json.get("blocks").size());
        assertEquals("e8d3ec39b907b74c", json.at("/blocks/1/local").asText());
        assertEquals("44a2b2379d6d3c3d", json.at("/blocks/1/sequence").asText());
    }

    @Test
    void tokensThatFillNoBlockPrintNothingAndSayWhy() {
        final CommandRun run = CommandRun.of("hash", "--block-size", "4", "--tokens", "1,2,3");
        assertEquals(0, run.exitCode());
        assertEquals("", run.out());
        assertTrue(run.err().contains("3 tokens, --block-size 4"), run.err());
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '"',
            value = {
                "0 | 1 | --block-size 0",
                "4 | 1;x | token 0 is '1;x'",
                "4 | -1 | token 0 is '-1'"
            })
    void refusesWhatIsNoNumberWithTheValue(String blockSize, String tokens, String expected) {
        final CommandRun run =
                CommandRun.of("hash", "--block-size=" + blockSize, "--tokens=" + tokens);
        assertEquals(ExitCode.USAGE, run.exitCode());
        assertTrue(run.err().contains(expected), run.err());
    }
}
