package io.kvasir.chronicle;

import io.kvasir.prompt.memo.PromptMemo;
import io.kvasir.prompt.memo.PromptMemoConfig;
import io.kvasir.prompt.memo.PromptMemoProvider;

import java.io.IOException;

/** Opens {@link ChroniclePromptMemo}s. */
public final class ChroniclePromptMemoProvider implements PromptMemoProvider {
    /** For {@link java.util.ServiceLoader}. */
    public ChroniclePromptMemoProvider() {}

    @Override
    public PromptMemo open(PromptMemoConfig config) throws IOException {
        return new ChroniclePromptMemo(config);
    }
}
