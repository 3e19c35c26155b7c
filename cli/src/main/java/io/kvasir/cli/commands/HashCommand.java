package io.kvasir.cli.commands;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.ExitCode;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.NamedFile;
import io.kvasir.core.hash.BlockHasher;

import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.concurrent.Callable;

/** {@code kvasir hash}: block hashes of a token list, for comparison with other programs. */
@Command(
        name = "hash",
        description = {
            "Print the block hashes of a token list.",
            "",
            "One line per full block: index, local hash (the block's tokens alone: XXH3-64 of"
                + " little-endian u32, seed 1337), sequence hash (the block and everything before"
                + " it). Tokens after the last full block have no hash.",
            ""
        },
        footer = {
            "",
            "Examples:",
            "  kvasir hash --block-size 4 --tokens 1,2,3,4,5,6,7,8",
            "  kvasir hash --block-size 16 --tokens-file prompt.json --lora my-adapter --json",
            "",
            "Exit codes: 0 hashes printed (also none, when the tokens fill no block); 2, 3 as ever."
        })
public final class HashCommand implements Callable<Integer> {
    private static final HexFormat HEX = HexFormat.of();

    @Mixin private CommonOptions common;

    @Option(
            names = "--block-size",
            paramLabel = "N",
            required = true,
            description = "Tokens per block; the engine's KV block size.")
    private int blockSize;

    @ArgGroup(multiplicity = "1")
    private Source source;

    @Option(
            names = "--lora",
            paramLabel = "NAME",
            description = "LoRA adapter name; enters the seed. Default: none.")
    private String lora;

    @Option(
            names = "--salt",
            paramLabel = "S",
            description = "Cache salt (tenant); enters the seed. Default: none.")
    private String salt;

    @Option(names = "--json", description = "Print one JSON object instead of lines.")
    private boolean json;

    /** Where the tokens come from; exactly one is given. */
    static final class Source {
        @Option(
                names = "--tokens",
                paramLabel = "IDS",
                description = "Token ids, unsigned 32-bit, separated by commas or blanks.")
        private String tokens;

        @Option(
                names = "--tokens-file",
                paramLabel = "FILE",
                description =
                        "File of token ids separated by commas, blanks or lines; a JSON array is"
                                + " fine. - is standard input.")
        private Path file;

        int[] read(CommonOptions common) throws IOException {
            if (tokens == null) {
                return NamedFile.read("--tokens-file", file, () -> TokenList.read(file));
            }
            try {
                return TokenList.parse(tokens);
            } catch (CommandFailure e) {
                throw common.wrong("--tokens: " + e.getMessage());
            }
        }
    }

    @Override
    public Integer call() throws IOException {
        common.atLeast("--block-size", blockSize, 1);
        final int[] tokens = source.read(common);
        final long[] local = new long[BlockHasher.blockCount(tokens.length, blockSize)];
        final int count =
                BlockHasher.localHashes(
                        tokens, 0, tokens.length, blockSize, BlockHasher.seed(lora, salt), local);
        final long[] sequence = new long[count];
        BlockHasher.sequenceHashes(local, count, sequence);
        if (json) {
            printJson(tokens.length, local, sequence);
        } else {
            printLines(tokens.length, local, sequence);
        }
        return ExitCode.OK;
    }

    private void printLines(int tokenCount, long[] local, long[] sequence) {
        final PrintWriter out = common.out();
        for (int i = 0; i < sequence.length; i++) {
            out.println(i + " " + HEX.toHexDigits(local[i]) + " " + HEX.toHexDigits(sequence[i]));
        }
        out.flush();
        if (sequence.length == 0) {
            common.err()
                    .println("no full block: " + tokenCount + " tokens, --block-size " + blockSize);
            common.err().flush();
        }
    }

    private void printJson(int tokenCount, long[] local, long[] sequence) {
        final ObjectNode root = Json.object();
        root.put("block_size", blockSize).put("tokens", tokenCount);
        root.put("seed", HEX.toHexDigits(BlockHasher.seed(lora, salt)));
        final ArrayNode blocks = root.putArray("blocks");
        for (int i = 0; i < sequence.length; i++) {
            blocks.addObject()
                    .put("index", i)
                    .put("local", HEX.toHexDigits(local[i]))
                    .put("sequence", HEX.toHexDigits(sequence[i]));
        }
        Json.print(root, common.out());
    }
}
