package io.kvasir.chronicle;

/**
 * What a {@link SharedMap} is made by. Maps with equal layouts in one folder are one.
 *
 * @param name of its files: small letters and dashes
 * @param version of the entries' layout; older and newer ones are never read
 * @param entries most entries
 * @param keyBytes longest key
 * @param valueBytes longest value
 */
record MapLayout(String name, int version, long entries, int keyBytes, int valueBytes) {
    /** Beginning of the names of its files. */
    String prefix() {
        return name + "-v" + version + "-" + entries + "-";
    }
}
