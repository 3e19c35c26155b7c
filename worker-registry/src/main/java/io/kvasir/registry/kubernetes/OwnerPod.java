package io.kvasir.registry.kubernetes;

/**
 * The pod that an object belongs to: Kubernetes deletes the object with it.
 *
 * @param name of the pod, in the object's namespace
 * @param uid of this run of it
 */
public record OwnerPod(String name, String uid) {
    /** Checks the values. */
    public OwnerPod {
        if (name.isBlank() || uid.isBlank()) {
            throw new IllegalArgumentException(
                    "pod name='" + name + "', uid='" + uid + "': both are needed");
        }
    }
}
