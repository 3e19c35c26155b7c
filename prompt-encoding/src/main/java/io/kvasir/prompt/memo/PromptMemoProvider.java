package io.kvasir.prompt.memo;

import java.io.IOException;
import java.util.ServiceLoader;

/**
 * Opens memos. Implementations are found by {@link ServiceLoader}, so that a process that has none
 * on its class path needs neither its libraries nor its flags.
 */
public interface PromptMemoProvider {
    /**
     * Opens a memo, or makes it.
     *
     * @param config where and how large
     * @return the memo; to be closed
     * @throws IOException if it cannot be used; the message says what to change
     */
    PromptMemo open(PromptMemoConfig config) throws IOException;

    /**
     * Opens a memo by the implementation on the class path.
     *
     * @param config where and how large
     * @return the memo; to be closed
     * @throws IOException if there is no implementation, or the memo cannot be used
     */
    static PromptMemo openFirst(PromptMemoConfig config) throws IOException {
        return first().open(config);
    }

    /**
     * The implementation on the class path.
     *
     * @throws IOException if there is none
     */
    static PromptMemoProvider first() throws IOException {
        return ServiceLoader.load(PromptMemoProvider.class)
                .findFirst()
                .or( // the thread may have another one's context class loader
                        () ->
                                ServiceLoader.load(
                                                PromptMemoProvider.class,
                                                PromptMemoProvider.class.getClassLoader())
                                        .findFirst())
                .orElseThrow(
                        () ->
                                new IOException(
                                        "nothing on the class path shares memory; add the"
                                                + " artifact kvasir-state-chronicle"));
    }
}
