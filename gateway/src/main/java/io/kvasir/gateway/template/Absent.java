package io.kvasir.gateway.template;

/** Stands where there is no value at all, not even null. */
enum Absent {
    ABSENT
}
