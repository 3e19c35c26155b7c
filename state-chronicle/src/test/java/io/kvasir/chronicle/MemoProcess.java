package io.kvasir.chronicle;

import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemoConfig;

import net.openhft.chronicle.map.ChronicleMap;
import net.openhft.chronicle.map.ExternalMapQueryContext;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;

/** Another process with the same memo. */
final class MemoProcess {
    static final int ENTRIES = 500;

    /** A cell whose segment's lock is held. */
    static final byte[] CELL = new byte[Long.BYTES];

    private MemoProcess() {}

    static PromptMemoConfig config(Path folder) {
        return new PromptMemoConfig(folder, ENTRIES, Duration.ofHours(1));
    }

    static byte[] key(int number) {
        return MemoView.sha256().digest(ByteBuffer.allocate(4).putInt(0, number).array());
    }

    /** Tokens that say whose they are, all alike. */
    static int[] tokens(int number) {
        final int[] tokens = new int[1 + number % 2_500];
        Arrays.fill(tokens, number);
        return tokens;
    }

    /** Wrong tokens found under keys 0 .. count; all keys are put, too. */
    static int wrong(ChroniclePromptMemo memo, int from, int count) {
        int wrong = 0;
        for (int i = from; i < from + count; i++) {
            final int[] found = memo.get(key(i));
            if (found != null && !Arrays.equals(found, tokens(i))) {
                wrong++;
            }
            memo.put(key(i), tokens(i));
        }
        return wrong;
    }

    /** Keys of the first 10,000 whose tokens are there, and right. */
    private static int right(ChroniclePromptMemo memo) {
        int right = 0;
        for (int i = 0; i < 10_000; i++) {
            right += Arrays.equals(memo.get(key(i)), tokens(i)) ? 1 : 0;
        }
        return right;
    }

    /** Folder, and what to do: "put" keys; "hold-…" a lock of a cell's segment until killed. */
    public static void main(String[] args) throws IOException {
        final Path folder = Path.of(args[0]);
        if (args[1].equals("put")) {
            try (ChroniclePromptMemo memo = new ChroniclePromptMemo(config(folder))) {
                System.out.println("right " + right(memo) + " of " + memo.counts().hits());
                System.out.println("wrong " + wrong(memo, 0, 10_000));
            }
            return;
        }
        final ChronicleMap<byte[], byte[]> map =
                new MapFiles(folder, ChroniclePromptMemo.layout(ENTRIES)).open(null).map();
        final ExternalMapQueryContext<byte[], byte[], ?> context = map.queryContext(CELL);
        switch (args[1]) {
            case "hold-read" -> context.readLock().lock();
            case "hold-update" -> context.updateLock().lock();
            default -> {
                context.updateLock().lock();
                context.writeLock().lock();
            }
        }
        System.out.println("held");
        while (System.in.read() >= 0) {
            // until it is killed
        }
    }
}
