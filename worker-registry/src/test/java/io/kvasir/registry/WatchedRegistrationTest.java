package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.net.URI;
import java.time.Duration;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BooleanSupplier;

/** The server answers as a script says; the watch ends with the script. */
class WatchedRegistrationTest {
    private static final InstanceId ID = new InstanceId("ns", "backend", "generate", "w1");
    private static final Registration DESCRIBED =
            Registration.builder(ID, "m", URI.create("http://h:1")).build();

    private final MemoryStore store = new MemoryStore(Duration.ofMillis(90));
    private final Registrar registrar = new Registrar(store);
    private final List<String> received = new CopyOnWriteArrayList<>();
    private WatchedRegistration watched;

    @AfterEach
    void close() {
        registrar.close();
    }

    private final class Received implements WatchedRegistration.Listener {
        @Override
        public void registered(Registration described) {
            received.add("registered");
        }

        @Override
        public void lost() {
            received.add("lost");
        }

        @Override
        public void refused(RegistryException cause) {
            received.add("refused");
        }
    }

    private boolean run(BooleanSupplier answers) throws InterruptedException {
        watched =
                new WatchedRegistration(
                        registrar, DESCRIBED, answers, Duration.ofMillis(1), new Received());
        return watched.run();
    }

    /** One character a question: + answers, - does not, ! runs the action; the watch ends then. */
    private boolean run(String script, Runnable action) throws InterruptedException {
        final Iterator<Integer> steps = script.chars().boxed().iterator();
        return run(
                () -> {
                    if (!steps.hasNext()) {
                        watched.close();
                        return false;
                    }
                    final int step = steps.next();
                    if (step == '!') {
                        action.run();
                    }
                    return step != '-';
                });
    }

    private Registration stored() {
        final Stored stored = store.get(ID.key());
        return stored == null ? null : Registration.decode(stored.value());
    }

    @Test
    void itIsRegisteredFromTheFirstAnswerOnAndTakenBackAtTheEnd() throws Exception {
        assertFalse(
                run(
                        "---+++!",
                        () -> {
                            assertEquals(InstanceState.READY, stored().state());
                            watched.drain();
                            assertEquals(InstanceState.DRAINING, stored().state());
                        }));
        assertEquals(List.of("registered"), received);
        assertNull(stored());
    }

    @Test
    void twoMissedAnswersAreNothingAndThreeAreTheEndOfTheRegistration() throws Exception {
        final long[] generations = new long[2];
        run("+--!", () -> generations[0] = stored().generation());
        assertEquals(List.of("registered"), received);
        run(
                "+---!-+!",
                () -> {
                    if (received.size() == 3) {
                        assertNull(stored()); // asked before it is registered again
                    } else {
                        generations[1] = stored().generation();
                    }
                });
        assertEquals(List.of("registered", "registered", "lost", "registered"), received);
        assertTrue(generations[1] > generations[0], generations[0] + " " + generations[1]);
    }

    @Test
    void aStoreThatDoesNotAnswerIsTriedAgain() throws Exception {
        store.away(true);
        run("++!+", () -> store.away(false));
        assertEquals(List.of("refused", "refused", "registered"), received);
    }

    @Test
    void aNewerRunElsewhereEndsThisOneAndStays() throws Exception {
        try (Registrar other = new Registrar(store)) {
            final ModelRegistration[] newer = {null};
            // the registrar sees it at its next renewal
            assertTrue(
                    run(
                            () -> {
                                if (!received.isEmpty() && newer[0] == null) {
                                    newer[0] = other.registerModel(DESCRIBED, Duration.ZERO);
                                }
                                return true;
                            }));
            watched.close();
            assertEquals(newer[0].registration().generation(), stored().generation());
        }
    }

    @Test
    void aGenerationThatIsGivenIsRefused() {
        final Registration given = DESCRIBED.withGeneration(7);
        assertThrows(
                IllegalArgumentException.class,
                () ->
                        new WatchedRegistration(
                                registrar,
                                given,
                                () -> true,
                                Duration.ofMillis(1),
                                new Received()));
    }

    @Test
    void closedBeforeItRunsItRegistersNothing() throws Exception {
        final WatchedRegistration closed =
                new WatchedRegistration(
                        registrar, DESCRIBED, () -> true, Duration.ofMillis(1), new Received());
        closed.drain();
        closed.close();
        closed.close();
        assertFalse(closed.run());
        assertEquals(List.of(), received);
    }
}
