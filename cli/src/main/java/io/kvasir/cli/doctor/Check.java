package io.kvasir.cli.doctor;

import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Outcome of one test.
 *
 * @param name what was tested, in few words
 * @param result whether it is so
 * @param seen the value that was found; others' text, not fit for a terminal as it is
 * @param expected the value that had to be
 * @param remedy what to do; empty where nothing is to be done
 */
public record Check(String name, Result result, String seen, String expected, String remedy) {
    /** How a test ended. */
    public enum Result {
        /** As expected. */
        PASS,
        /** Not as expected. */
        FAIL,
        /** Could not be tested, or there is nothing to test. */
        SKIP
    }

    static Check pass(String name, String seen, String expected) {
        return new Check(name, Result.PASS, seen, expected, "");
    }

    static Check fail(String name, String seen, String expected, String remedy) {
        return new Check(name, Result.FAIL, seen, expected, remedy);
    }

    static Check skip(String name, String why, String remedy) {
        return new Check(name, Result.SKIP, why, "", remedy);
    }

    /** Adds it to an object. */
    public void put(ObjectNode json) {
        json.put("check", name)
                .put("result", result.name())
                .put("seen", seen)
                .put("expected", expected)
                .put("remedy", remedy);
    }
}
