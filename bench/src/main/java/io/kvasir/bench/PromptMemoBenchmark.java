package io.kvasir.bench;

import io.kvasir.chronicle.ChroniclePromptMemo;
import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoConfig;
import io.kvasir.prompt.memo.PromptMemoCounts;
import io.kvasir.prompt.tokenizer.Tokenizer;
import io.kvasir.prompt.tokenizer.Tokenizers;

import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/**
 * Cost of a prompt with one section of so many characters. Questions answered: what does a hit in
 * shared memory cost beside tokenizing anew, what does a miss add, and from which length on does
 * looking up pay?
 *
 * <p>The texts are words of a made-up language in Zipf's frequencies, so the tokenizer's word cache
 * works as on prose. Each call takes the next of 16 texts.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {
            "-Xms1g",
            "-Xmx1g",
            "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
            "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
            "--add-exports=jdk.unsupported/sun.misc=ALL-UNNAMED",
            "--add-exports=jdk.compiler/com.sun.tools.javac.file=ALL-UNNAMED",
            "--add-opens=jdk.compiler/com.sun.tools.javac=ALL-UNNAMED",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
            "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
            "--add-opens=java.base/java.io=ALL-UNNAMED",
            "--add-opens=java.base/java.util=ALL-UNNAMED",
            "--sun-misc-unsafe-memory-access=allow"
        })
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class PromptMemoBenchmark {
    private static final int TEXTS = 16;
    private static final int WORDS = 20_000;
    private static final int ENTRIES = 8_192;
    private static final byte[] IDENTITY = new byte[32];

    /** Where files are memory: on a disk's file system a first write to a page costs far more. */
    private static final Path MEMORY = Path.of("/dev/shm");

    /** Characters of the section. */
    @Param({"1024", "4096", "32768", "262144"})
    public int chars;

    /** A {@code tokenizer.json} with the added token {@code <|eot_id|>}. */
    @Param({
        "prompt-encoding/src/test/resources/io/kvasir/prompt/tokenizer/llama3-style/tokenizer.json"
    })
    public String file;

    private final String[] texts = new String[TEXTS];
    private Tokenizer tokenizer;
    private Path folder;
    private PromptMemo shared;
    private int next;

    /** Knows nothing and keeps nothing: what is left is the hash. */
    private static final class Nothing implements PromptMemo {
        @Override
        public int[] get(byte[] key) {
            return null;
        }

        @Override
        public void put(byte[] key, int[] tokens) {
            // nothing is kept
        }

        @Override
        public PromptMemoCounts counts() {
            return new PromptMemoCounts(0, 0, 0, 0);
        }

        @Override
        public void close() {
            // nothing is held
        }
    }

    private final PromptMemo nothing = new Nothing();

    /** Writes the texts and fills the memo. */
    @Setup(Level.Trial)
    public void fill() throws IOException {
        tokenizer = Tokenizers.load(Path.of(file));
        folder =
                Files.isDirectory(MEMORY)
                        ? Files.createTempDirectory(MEMORY, "kvasir-memo-bench")
                        : Files.createTempDirectory("kvasir-memo-bench");
        shared =
                new ChroniclePromptMemo(new PromptMemoConfig(folder, ENTRIES, Duration.ofHours(1)));
        final SplittableRandom random = new SplittableRandom(1337);
        final String[] words = new String[WORDS];
        for (int i = 0; i < WORDS; i++) {
            final StringBuilder word = new StringBuilder();
            for (int n = 1 + random.nextInt(5); n > 0; n--) {
                word.append("bcdfghklmnprstvw".charAt(random.nextInt(16)));
                word.append("aeiou".charAt(random.nextInt(5)));
            }
            words[i] = word.toString();
        }
        for (int i = 0; i < TEXTS; i++) {
            final StringBuilder text = new StringBuilder("text " + i);
            while (text.length() < chars) {
                final int rank = (int) Math.pow(WORDS, random.nextDouble()) - 1;
                text.append(' ').append(words[rank]).append(random.nextInt(12) == 0 ? "," : "");
            }
            text.setLength(chars);
            texts[i] = text.append("<|eot_id|>and the rest").toString();
            if (!Arrays.equals(tokenizer.encode(texts[i], false), encode(texts[i], shared))) {
                throw new IllegalStateException("other tokens with the memo");
            }
        }
    }

    /** Deletes the memo. */
    @TearDown(Level.Trial)
    public void delete() throws IOException {
        System.out.println(shared.counts());
        shared.close();
        tokenizer.close();
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path path : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    private int[] encode(String text, PromptMemo memo) {
        return tokenizer.encode(
                text, false, Integer.MAX_VALUE, new MemoView(memo, IDENTITY, "tenant"));
    }

    private String nextText() {
        return texts[next++ & (TEXTS - 1)];
    }

    /** Without a memo. */
    @Benchmark
    public int[] anew() {
        return tokenizer.encode(nextText(), false, Integer.MAX_VALUE);
    }

    /** Every section is found. */
    @Benchmark
    public int[] hit() {
        return encode(nextText(), shared);
    }

    /** No section is found, and each is put: another tenant each time. */
    @Benchmark
    public int[] missAndPut() {
        return tokenizer.encode(
                nextText(),
                false,
                Integer.MAX_VALUE,
                new MemoView(shared, IDENTITY, Integer.toString(next)));
    }

    /** No section is found, none is put, nothing is asked: hashing alone. */
    @Benchmark
    public int[] hashed() {
        return encode(nextText(), nothing);
    }
}
