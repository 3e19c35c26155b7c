package io.kvasir.prompt.jinja;

/** Stands where there is no value at all, not even null. */
enum Absent {
    ABSENT
}
