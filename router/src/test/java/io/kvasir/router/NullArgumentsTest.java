package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.index.StorageTier;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.router.load.LoadSource;
import io.kvasir.router.policy.RoutingMode;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** A null is either a value, or refused with the name of what is null. */
class NullArgumentsTest {
    private final KvRouter router =
            KvRouter.builder()
                    .tickedBy(() -> 1)
                    .blockSize(16)
                    .maxWorkers(64)
                    .maxBlocks(1_024, 1_024)
                    .build();
    private final Worker worker = router.addWorker(WorkerSpec.of(1, "w1", "http://w1"));
    private int calls;

    @AfterEach
    void close() {
        router.close();
    }

    private Object usual(Class<?> type) {
        return switch (type.getSimpleName()) {
            case "int" -> 1;
            case "long" -> 1L;
            case "double" -> 1.0;
            case "boolean" -> false;
            case "int[]" -> new int[64];
            case "long[]" -> new long[64];
            case "String" -> "id" + calls++;
            case "Set" -> Set.of();
            case "Map" -> Map.of();
            case "Duration" -> Duration.ZERO;
            case "Decision" -> new Decision();
            case "Lease" -> new Lease();
            case "Worker" -> worker;
            case "WorkerSpec" -> WorkerSpec.of(2 + calls++, "w" + calls, "http://w");
            case "RouteRequest" -> router.newRequest().tokens(new int[64], 64);
            case "OverlapScores" -> new OverlapScores(64);
            case "Settings" -> router.settings();
            case "Setting" -> RouterSettings.MODE;
            case "RoutingMode", "Object" -> RoutingMode.KV;
            case "SourceConfig" -> EngineMessages.source("w1", 16);
            case "StorageTier" -> StorageTier.HOST;
            case "LoadSource" -> LoadSource.EMBEDDER;
            default -> null;
        };
    }

    private Object target(Method method) {
        final Class<?> of = method.getDeclaringClass();
        if (Modifier.isStatic(method.getModifiers())) {
            return null;
        }
        return of == KvRouter.class
                ? router
                : of == RouterConfig.Builder.class ? KvRouter.builder() : usual(of);
    }

    /** What is wrong with the words of the exceptions for a null in each of the parameters. */
    private List<String> complaints(Method method) throws IllegalAccessException {
        final List<String> complaints = new ArrayList<>();
        final Class<?>[] types = method.getParameterTypes();
        for (int i = 0; i < types.length; i++) {
            if (types[i].isPrimitive()) {
                continue;
            }
            final Object[] arguments = Arrays.stream(types).map(this::usual).toArray();
            arguments[i] = null;
            try {
                method.invoke(target(method), arguments);
            } catch (InvocationTargetException e) {
                final Throwable thrown = e.getCause();
                final String said = String.valueOf(thrown.getMessage());
                if (thrown instanceof NullPointerException
                        && (said.equals("null") || said.startsWith("Cannot "))) {
                    complaints.add(method + ", parameter " + i + ": " + said);
                }
            }
        }
        return complaints;
    }

    @Test
    void eachIsNamedOrIsAValue() throws IllegalAccessException {
        final List<String> complaints = new ArrayList<>();
        int methods = 0;
        for (Class<?> type :
                List.of(
                        KvRouter.class,
                        RouteRequest.class,
                        RouterConfig.Builder.class,
                        Worker.class,
                        WorkerSpec.class)) {
            for (Method method : type.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers())
                        && !method.isBridge()
                        && !method.getName().equals("close")) {
                    complaints.addAll(complaints(method));
                    methods++;
                }
            }
        }
        assertTrue(methods > 100, methods + " methods");
        assertEquals(List.of(), complaints);
        assertEquals(0, router.activeLeases());
    }

    private static String refused(Runnable call) {
        return assertThrows(NullPointerException.class, call::run).getMessage();
    }

    @Test
    void whatIsNullInACollectionIsNamed() {
        final WorkerSpec spec = WorkerSpec.of(1, "w", "http://w");
        final Map<String, String> labels = new HashMap<>();
        labels.put("zone", null);
        assertEquals("the value of label zone is null", refused(() -> spec.labelled(labels)));
        final Map<String, String> unnamed = new HashMap<>();
        unnamed.put(null, "a");
        assertEquals("the name of a label is null", refused(() -> spec.labelled(unnamed)));
        assertEquals(
                "a named taint is null",
                refused(() -> spec.tainted(Collections.singleton((String) null))));
        assertEquals(
                "the name of an adapter is null",
                refused(() -> worker.adapters(Collections.singleton((String) null))));
    }
}
