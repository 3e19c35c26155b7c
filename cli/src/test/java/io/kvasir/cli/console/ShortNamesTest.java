package io.kvasir.cli.console;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.util.List;

class ShortNamesTest {
    @Test
    void aLongNameKeepsItsHeadItsTailAndItsRank() {
        final String pod = "vllm-llama-3-70b-instruct-deployment-7f9c8d6b5d-x2k4q/";
        final List<String> ranks = List.of(pod + 0, pod + 1, "short/0");
        final ShortNames names = new ShortNames(ranks, 40);
        assertEquals("vllm-llama-3-70b-in…t-7f9c8d6b5d-x2k4q/0", names.of(ranks.getFirst()));
        assertEquals("vllm-llama-3-70b-in…t-7f9c8d6b5d-x2k4q/1", names.of(ranks.get(1)));
        assertEquals("short/0", names.of("short/0"));
    }

    @Test
    void namesThatDifferInTheirMiddleAloneAreLeftLonger() {
        final String head = "a".repeat(50);
        final String tail = "z".repeat(50);
        final List<String> all = List.of(head + "-1-" + tail, head + "-2-" + tail, head + tail);
        final ShortNames names = new ShortNames(all, 40);
        assertEquals(3, all.stream().map(names::of).distinct().count());
    }

    @Test
    void namesThatCannotBeShownDifferentlyEndTheSearch() {
        final ShortNames names = new ShortNames(List.of("a\u0001", "a\u0002", "模".repeat(30)), 40);
        assertEquals("a?", names.of("a\u0001"));
        assertEquals("模".repeat(30), names.of("模".repeat(30)));
    }
}
