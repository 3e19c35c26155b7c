package io.kvasir.router.settings;

import io.kvasir.pipeline.log.LineText;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** All settings of one program, found by name or former name. Immutable. */
public final class SettingTable {
    private final List<Setting<?>> rows;
    private final Map<String, Setting<?>> byName = new LinkedHashMap<>();

    /**
     * A table.
     *
     * @param rows in the order in which they are listed
     * @throws IllegalArgumentException if two have a name in common
     */
    public SettingTable(List<Setting<?>> rows) {
        this.rows = List.copyOf(rows);
        for (Setting<?> row : rows) {
            add(row.name(), row);
            row.aliases().forEach(alias -> add(alias, row));
        }
    }

    private void add(String name, Setting<?> row) {
        if (byName.putIfAbsent(name, row) != null) {
            throw new IllegalArgumentException("two settings are named '" + name + "'");
        }
    }

    /** A table with these rows after those of this one. */
    public SettingTable with(List<Setting<?>> more) {
        final List<Setting<?>> all = new ArrayList<>(rows);
        all.addAll(more);
        return new SettingTable(all);
    }

    /** Its settings, in order. */
    public List<Setting<?>> rows() {
        return rows;
    }

    /** Whether a setting has that name or had it. */
    public boolean has(String name) {
        return byName.containsKey(name);
    }

    /**
     * Finds a setting.
     *
     * @param name its name or a former one
     * @return the setting
     * @throws IllegalArgumentException if there is none; the message has the nearest name
     */
    public Setting<?> named(String name) {
        Objects.requireNonNull(name, "the name of a setting is null");
        final Setting<?> row = byName.get(name);
        if (row == null) {
            throw new IllegalArgumentException(
                    "unknown setting '"
                            + LineText.of(name)
                            + "'; the nearest is '"
                            + nearest(name)
                            + "'");
        }
        return row;
    }

    /**
     * The known name that is most like another one, of which more characters than any name has do
     * not count.
     *
     * @return a name or a former one; null of a table without rows
     */
    public String nearest(String name) {
        return NearestName.ofOrNull(name, byName.keySet());
    }
}
