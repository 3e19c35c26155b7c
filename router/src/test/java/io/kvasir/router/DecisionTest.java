package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.List;

/** What a decision answers before there is one. */
class DecisionTest {
    @Test
    void everyQuestionAboutTheChosenWorkerHasAnAnswerBeforeOneIsChosen() {
        final Decision decision = new Decision();
        final List<String> asked = new ArrayList<>();
        for (Method method : Decision.class.getDeclaredMethods()) {
            if (Modifier.isPublic(method.getModifiers()) && method.getParameterCount() == 0) {
                assertDoesNotThrow(() -> method.invoke(decision), method.getName());
                asked.add(method.getName());
            }
        }
        assertTrue(asked.contains("tokensToCompute"), asked.toString());
        assertEquals(0, decision.tokensToCompute());
    }
}
