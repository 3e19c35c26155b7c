package io.kvasir.registry;

import java.util.Set;

/** Part of a request that an instance is there for. */
public enum InstanceRole {
    /** Prefill and decode. */
    BOTH,
    /** Computes prompts for workers that decode. */
    PREFILL,
    /** Generates, from blocks of prompts that it fetches from where they were computed. */
    DECODE;

    /** What the types say where no role is given. */
    static InstanceRole of(Set<ModelType> types) {
        if (types.equals(Set.of(ModelType.PREFILL))) {
            return PREFILL;
        }
        return types.contains(ModelType.DECODE) && !types.contains(ModelType.PREFILL)
                ? DECODE
                : BOTH;
    }
}
