package io.kvasir.registry;

/** A key of a {@link LeasedStore} as it is stored. */
public final class Stored {
    private static final byte[] NOTHING = {};

    private final String key;
    private final byte[] value;
    private final long revision;

    /**
     * Takes what was read.
     *
     * @param key without the store's own prefix
     * @param value not copied; null, as some clients give what is empty, is no bytes
     * @param revision above 0; changes with each write of the key
     */
    public Stored(String key, byte[] value, long revision) {
        this.key = key;
        this.value = value == null ? NOTHING : value;
        this.revision = revision;
    }

    /** Without the store's own prefix. */
    public String key() {
        return key;
    }

    /** Its bytes; not copied. */
    public byte[] value() {
        return value;
    }

    /** Changes with each write of the key. */
    public long revision() {
        return revision;
    }
}
