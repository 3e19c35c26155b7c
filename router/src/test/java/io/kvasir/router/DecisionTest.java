package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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

    @ParameterizedTest
    @CsvSource({
        "1, 1, 0, blockSize=0 must be 1 or more",
        "1, 1, -16, blockSize=-16 must be 1 or more",
        "1, -1, 16, tokenCount=-1 must be 0 or more",
        "-1, 1, 16, overlapBlocks=-1 must be 0 or more"
    })
    void cachedTokensOfWhatCannotBeAreRefused(int overlap, int tokens, int size, String said) {
        assertEquals(
                said,
                assertThrows(
                                IllegalArgumentException.class,
                                () -> Decision.cachedTokens(overlap, tokens, size))
                        .getMessage());
    }
}
