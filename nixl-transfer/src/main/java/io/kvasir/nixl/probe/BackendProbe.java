package io.kvasir.nixl.probe;

import io.kvasir.panama.nixl.NixlAgent;
import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability.Available;
import io.kvasir.panama.nixl.NixlException;
import io.kvasir.panama.nixl.NixlProbe;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Opens the backend of every plugin of NIXL, in a process of its own: some plugins print to
 * standard output, and one that ends its process must not end ours.
 */
public final class BackendProbe {
    private static final String MARK = "backend\t";
    private static final int PATIENCE_SECONDS = 60;

    private BackendProbe() {}

    /**
     * What became of each plugin that NIXL lists.
     *
     * @return a line for each plugin, in NIXL's order
     * @throws IOException if no process can be started
     */
    public static Map<String, String> open() throws IOException {
        final Map<String, String> outcomes = new LinkedHashMap<>();
        try {
            final ChildJvm.Result child =
                    ChildJvm.run(PATIENCE_SECONDS, Map.of(), BackendProbe.class);
            child.out()
                    .lines()
                    .filter(line -> line.startsWith(MARK))
                    .map(line -> List.of(line.split("\t", -1)))
                    .forEach(words -> outcomes.put(words.get(1), words.get(2)));
            if (!child.ended() || child.exitCode() != 0) {
                outcomes.put("the next one", "ended the process that opened it");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        return outcomes;
    }

    /**
     * The process itself: a line for each plugin as soon as it is known.
     *
     * @param args none
     */
    public static void main(String[] args) {
        if (!(NixlProbe.probe() instanceof Available available)) {
            return;
        }
        final String name = "kvasir-doctor-" + UUID.randomUUID();
        try (NixlAgent agent = available.library().createAgent(name, NixlAgentConfig.DEFAULT)) {
            for (String plugin : agent.availablePlugins()) {
                System.out.println("\n" + MARK + plugin + "\t" + outcome(agent, plugin));
                System.out.flush();
            }
        }
    }

    private static String outcome(NixlAgent agent, String plugin) {
        try {
            final String memories = agent.plugin(plugin).memories().toString();
            agent.createBackend(plugin, Map.of());
            return "opens, moves " + memories;
        } catch (NixlException e) {
            return "does not open: "
                    + e.status().map(Enum::name).orElse("status")
                    + " ("
                    + e.code()
                    + "), a library, a device or a parameter is missing; NIXL_LOG_LEVEL=INFO says"
                    + " which";
        }
    }
}
