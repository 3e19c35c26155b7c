package io.kvasir.router.spi;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ServiceLoader;

/**
 * Opens stores whose contents other processes of the host may look at. Implementations are found by
 * {@link ServiceLoader}, so that a process that has none on its class path needs neither its
 * libraries nor its flags.
 */
public interface StateStoreProvider {
    /**
     * Opens a store.
     *
     * @param folder of its objects, one store at a time that changes something
     * @param shared folder of what is shared with the other stores of the host
     * @return the store; to be closed
     * @throws IOException if it cannot be used; the message says what to change
     */
    StateStore open(Path folder, Path shared) throws IOException;

    /**
     * Opens a store by the implementation on the class path.
     *
     * @param folder of its objects
     * @param shared folder of what is shared with the other stores of the host
     * @return the store; to be closed
     * @throws IOException if there is no implementation, or the store cannot be used
     */
    static StateStore openFirst(Path folder, Path shared) throws IOException {
        return first().open(folder, shared);
    }

    /**
     * The implementation on the class path.
     *
     * @throws IOException if there is none
     */
    static StateStoreProvider first() throws IOException {
        return ServiceLoader.load(StateStoreProvider.class)
                .findFirst()
                .or( // the thread may have another one's context class loader
                        () ->
                                ServiceLoader.load(
                                                StateStoreProvider.class,
                                                StateStoreProvider.class.getClassLoader())
                                        .findFirst())
                .orElseThrow(
                        () ->
                                new IOException(
                                        "nothing on the class path shares memory; add the"
                                                + " artifact kvasir-state-chronicle"));
    }
}
