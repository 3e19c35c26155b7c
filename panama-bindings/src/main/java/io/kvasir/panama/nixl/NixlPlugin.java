package io.kvasir.panama.nixl;

import java.util.List;
import java.util.Map;

/**
 * What a NIXL plugin says of itself once it is loaded.
 *
 * @param name its type, such as {@code UCX}
 * @param memories kinds of memory it moves
 * @param parameters parameters of its backend with their defaults, in NIXL's order
 */
public record NixlPlugin(String name, List<NixlMemory> memories, Map<String, String> parameters) {}
