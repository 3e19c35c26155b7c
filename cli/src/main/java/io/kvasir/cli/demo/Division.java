package io.kvasir.cli.demo;

import io.kvasir.router.disagg.SplitMode;
import io.kvasir.sim.config.SimRole;

import java.util.List;

/** How four engines divide prefill and decode among them. */
public enum Division {
    /** Each engine does both. */
    AGGREGATED("aggregated", SplitMode.NEVER, SimRole.BOTH, SimRole.BOTH),

    /** Two prefill, two decode; every request is split. */
    ALWAYS("always split", SplitMode.ALWAYS, SimRole.PREFILL, SimRole.DECODE),

    /** The same engines; a request is split where that is expected to be faster. */
    CONDITIONAL("conditional", SplitMode.COST, SimRole.PREFILL, SimRole.DECODE);

    private final String title;
    private final SplitMode splitMode;
    private final SimRole first;
    private final SimRole second;

    Division(String title, SplitMode splitMode, SimRole first, SimRole second) {
        this.title = title;
        this.splitMode = splitMode;
        this.first = first;
        this.second = second;
    }

    /** Its name in tables. */
    public String title() {
        return title;
    }

    SplitMode splitMode() {
        return splitMode;
    }

    /** Role of each engine. */
    List<SimRole> roles() {
        return List.of(first, first, second, second);
    }
}
