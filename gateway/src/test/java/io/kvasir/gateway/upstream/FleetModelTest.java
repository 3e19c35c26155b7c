package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.closing.Closing;
import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.EventPlaneKind;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.ModelConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

/**
 * Views of workers that have just room, and each another place in it than before. What has its
 * place after all has it, whatever the order: only what still cannot be added is left out.
 */
class FleetModelTest {
    private static final int VIEWS = 300;
    private static final int WORKERS = 6;
    private static final int ROOM = 3; // ranks of a pool

    private final List<GatewayConfig> models =
            Gateways.config()
                    .set(GatewaySettings.MODELS, List.of(ModelConfig.parse("name=n")))
                    .set(RouterSettings.MAX_WORKERS, ROOM)
                    .set(GatewaySettings.EVENT_PLANE, EventPlaneKind.ZMQ)
                    .set(GatewaySettings.EVENT_PLANE_ADDRESSES, List.of("tcp://127.0.0.1:1"))
                    .build()
                    .models();
    private final List<PoolRouters> routers = PoolRouters.open(models);
    private final Fleet fleet =
            new Fleet(
                    List.of(
                            new UpstreamRegistry(models.get(0), routers.get(0)),
                            new UpstreamRegistry(models.get(1), routers.get(1))));
    private final Discovery.Listener source = fleet.listener("test");
    private final Random random = new Random(Seeds.next("FleetModelTest"));

    @AfterEach
    void close() {
        fleet.close();
        Closing.all(routers);
    }

    @Test
    void onlyWhatCannotBeAddedIsLeftOutOfAViewThatFits() {
        int wholeViews = 0;
        for (int i = 0; i < VIEWS; i++) {
            final List<DiscoveredWorker> view = viewThatFits();
            source.view(view);
            final Map<String, String> found = new HashMap<>();
            fleet.upstreams().forEach(each -> found.put(each.name(), each.labels().get("is")));
            final List<DiscoveredWorker> leftOut = new ArrayList<>();
            for (DiscoveredWorker worker : view) {
                if (!label(worker).equals(found.remove(worker.name()))) {
                    leftOut.add(worker);
                }
            }
            assertEquals(Map.of(), found, "no more");
            for (DiscoveredWorker worker : leftOut) {
                assertThrows(
                        IllegalArgumentException.class,
                        () -> source.added(worker),
                        () -> worker.name() + " is left out: " + label(worker));
            }
            wholeViews += leftOut.isEmpty() ? 1 : 0;
        }
        // 3.5 % of them, by 12,000 views
        assertEquals(VIEWS, wholeViews, VIEWS / 10, "others have what each other needs");
    }

    private static String label(DiscoveredWorker worker) {
        return worker.worker().labels().get("is");
    }

    private List<DiscoveredWorker> viewThatFits() {
        final Map<String, Integer> ranks = new HashMap<>();
        final Set<Integer> onPlane = new HashSet<>();
        final List<DiscoveredWorker> view = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) {
            final String model = random.nextBoolean() ? "m" : "n";
            final String role = random.nextInt(3) == 0 ? ",role=prefill" : "";
            final int dp = 1 + random.nextInt(2);
            final int id = random.nextInt(2 * WORKERS);
            if (ranks.merge(model + role, dp, Integer::sum) <= ROOM && onPlane.add(id)) {
                final String text =
                        "http://h:1,name=w%d,dp=%d,event-worker=%d,labels=is:%d/%d/%s"
                                .formatted(i, dp, id, id, dp, model + role.length());
                view.add(DiscoveredWorker.of(model, WorkerConfig.parse(text + role)));
            }
        }
        Collections.shuffle(view, random);
        return view;
    }
}
