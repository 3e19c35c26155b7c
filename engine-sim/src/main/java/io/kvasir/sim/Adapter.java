package io.kvasir.sim;

/** A LoRA adapter as events name it: ids count from 1. */
record Adapter(int id, String name) {}
