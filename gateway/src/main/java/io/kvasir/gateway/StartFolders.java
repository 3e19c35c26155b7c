package io.kvasir.gateway;

import io.kvasir.core.memory.FolderProbe;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.prompt.memo.PromptMemoProvider;
import io.kvasir.router.RouterFolders;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.settings.Settings;
import io.kvasir.router.spi.StateStoreProvider;
import io.kvasir.router.state.FileStateStore;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The folders of a gateway's routers, and the one that it shares with others of its host. Those of
 * a prefill pool, which are below its model's, are made with its first worker. Stateless.
 */
final class StartFolders {
    /** Of the files that are made in a shared folder as it is opened. */
    private static final String SHARED_FILE = "owner";

    private StartFolders() {}

    /** What a start would refuse of them, in its words. All is left as it is. */
    static List<String> problems(GatewayConfig config) {
        final List<String> problems = new ArrayList<>();
        final boolean remembers =
                config.models().stream()
                        .anyMatch(model -> Encoders.memoFolderOrNull(model) != null);
        if (remembers) {
            final Path folder = config.get(GatewaySettings.SHARED_MEMORY_DIR);
            try {
                var _ = PromptMemoProvider.first();
                FolderProbe.check(folder, SHARED_FILE);
            } catch (IOException e) {
                problems.add(Encoders.unusableMemo(folder, e).getMessage());
            }
        }
        final RouterFolders folders = new RouterFolders();
        for (GatewayConfig model : config.models()) {
            final List<String> ofModel = new ArrayList<>();
            Settings settings = model.settings();
            if (PoolRouters.sharesState(settings)) {
                try {
                    var _ = StateStoreProvider.first();
                    FileStateStore.check(settings.get(RouterSettings.STATE_DIR));
                    FolderProbe.check(settings.get(GatewaySettings.SHARED_MEMORY_DIR), SHARED_FILE);
                } catch (IOException e) {
                    ofModel.add(PoolRouters.unusableState(settings, e).getMessage());
                }
                settings = settings.toBuilder().without(RouterSettings.STATE_DIR).build();
            }
            ofModel.addAll(folders.problems(settings));
            for (String problem : ofModel) {
                problems.add(
                        config.models().size() > 1 ? PoolRouters.ofModel(model, problem) : problem);
            }
        }
        return problems;
    }
}
