package io.kvasir.router;

import io.kvasir.core.memory.DiskRoom;
import io.kvasir.router.journal.JournalFile;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Setting;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.state.FileStateStore;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The folders of routers that are yet to be made, all of them at once: whether they can be written
 * to, and their disks have room for the files of all. Leaves everything as it is, and does not ask
 * whether another router has a folder. One thread.
 */
public final class RouterFolders {
    private final DiskRoom room;
    private final List<String> problems = new ArrayList<>();

    /** A folder's check. */
    private interface Check {
        void run(Path folder) throws IOException;
    }

    /** Those of this machine. */
    public RouterFolders() {
        this(new DiskRoom());
    }

    RouterFolders(DiskRoom room) {
        this.room = room;
    }

    /**
     * Checks those of one more router.
     *
     * @param settings of which a router can be made
     * @return what {@link RouterConfig.Builder#build} would say of each that cannot be used; empty
     *     for nothing
     */
    public List<String> problems(Settings settings) {
        problems.clear();
        final RouterConfig config = KvRouter.builder().settings(settings).config();
        check(config, RouterSettings.COUNTERS_DIR, _ -> RouterCounters.check(config, room));
        if (config.get(RouterSettings.DECISION_JOURNAL) > 0) {
            check(config, RouterSettings.DECISION_JOURNAL_DIR, folder -> journal(config, folder));
        }
        if (config.isIndexed()) {
            check(config, RouterSettings.STATE_DIR, FileStateStore::check);
            check(config, RouterSettings.STATE_MAPPED_DIR, folder -> index(config, folder));
        }
        return List.copyOf(problems);
    }

    private void check(RouterConfig config, Setting<Path> setting, Check check) {
        final Path folder = config.get(setting);
        if (folder == null) {
            return;
        }
        try {
            check.run(folder);
        } catch (IOException e) {
            problems.add(StorageFailure.of(setting + "=" + folder, e).getMessage());
        }
    }

    private void journal(RouterConfig config, Path folder) throws IOException {
        JournalFile.check(
                folder,
                config.get(RouterSettings.DECISION_JOURNAL),
                config.get(RouterSettings.DECISION_JOURNAL_CANDIDATES),
                room);
    }

    private void index(RouterConfig config, Path folder) throws IOException {
        KeptPrefixes.check(
                folder,
                RouterConfig.index(config.settings()),
                config.get(RouterSettings.BLOCK_SIZE),
                room);
    }
}
