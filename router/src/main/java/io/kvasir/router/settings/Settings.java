package io.kvasir.router.settings;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Values of settings, each with its source. What is not set has its default. Immutable.
 *
 * <p>A value of a stronger source stays whatever a weaker one says, in any order of reading.
 */
public final class Settings {
    /** Where a value is from; the later the stronger. */
    public enum Source {
        /** The table. */
        DEFAULT,
        /** A configuration file. */
        FILE,
        /** An environment variable. */
        ENVIRONMENT,
        /** The command line. */
        FLAG,
        /** A call of the program that embeds the router. */
        CODE,
        /** An operator, while it runs. */
        OPERATOR
    }

    /** Texts: as it was written; null where it was not. */
    private record Entry(Object value, Source source, String origin, List<String> texts) {}

    private static final Entry UNSET = new Entry(null, Source.DEFAULT, "default", null);

    private final SettingTable table;
    private final Map<Setting<?>, Entry> entries;

    private Settings(Builder builder) {
        table = builder.table;
        entries = new HashMap<>(builder.entries);
    }

    /**
     * Starts with the defaults.
     *
     * @param table the known settings
     * @return a builder
     */
    public static Builder builder(SettingTable table) {
        return new Builder(table);
    }

    /**
     * The value of a setting.
     *
     * @param setting any
     * @param <T> its type
     * @return its value; null only where it has no default and is not set
     */
    @SuppressWarnings("unchecked") // entries are put by type
    public <T> T get(Setting<T> setting) {
        final Entry entry = entries.get(setting);
        return entry == null ? setting.usual() : (T) entry.value;
    }

    /** Where the value of a setting is from. */
    public Source source(Setting<?> setting) {
        return entries.getOrDefault(setting, UNSET).source;
    }

    /** File and line, variable or flag that has set the value; {@code default} if nothing has. */
    public String origin(Setting<?> setting) {
        return entries.getOrDefault(setting, UNSET).origin;
    }

    /**
     * The value of a setting as it is written in flags and files.
     *
     * @return elements of a list, one text of anything else; empty where there is no value
     */
    public <T> List<String> texts(Setting<T> setting) {
        final List<String> written = entries.getOrDefault(setting, UNSET).texts;
        return written == null ? printed(setting) : written;
    }

    /**
     * The same in one spelling: equal for equal values, however they were written.
     *
     * @return as {@link #texts}
     */
    public <T> List<String> printed(Setting<T> setting) {
        final T value = get(setting);
        if (value == null) {
            return List.of();
        }
        return value instanceof List<?> all
                ? all.stream().map(String::valueOf).toList()
                : List.of(setting.print(value));
    }

    /** The known settings. */
    public SettingTable table() {
        return table;
    }

    /**
     * The same values but for one, which is from code, whatever the source of the other was.
     *
     * @throws IllegalArgumentException if the value is out of range
     */
    public <T> Settings with(Setting<T> setting, T value) {
        return toBuilder().without(setting).set(setting, value).build();
    }

    /** Rows of which these values and others are not equal, in the order of the table. */
    public List<Setting<?>> differences(Settings others) {
        final List<Setting<?>> rows = new ArrayList<>();
        for (Setting<?> row : table.rows()) {
            if (!Objects.equals(get(row), others.get(row))) {
                rows.add(row);
            }
        }
        return rows;
    }

    /** A builder that starts with these values. */
    public Builder toBuilder() {
        final Builder builder = new Builder(table);
        builder.entries.putAll(entries);
        return builder;
    }

    /** Collects values. Owned by one thread. */
    public static final class Builder {
        private final SettingTable table;
        private final Map<Setting<?>, Entry> entries = new HashMap<>();

        private Builder(SettingTable table) {
            this.table = table;
        }

        /**
         * Sets a value from code.
         *
         * @throws IllegalArgumentException if it is out of range
         */
        public <T> Builder set(Setting<T> setting, T value) {
            return set(setting, value, Source.CODE, "code");
        }

        /** Sets a value, unless a stronger source has. */
        public <T> Builder set(Setting<T> setting, T value, Source source, String origin) {
            return set(setting, value, source, origin, null);
        }

        /**
         * Sets a value that was read from texts, unless a stronger source has.
         *
         * @param texts as {@link Settings#texts} shows it
         */
        public <T> Builder set(
                Setting<T> setting, T value, Source source, String origin, List<String> texts) {
            Objects.requireNonNull(setting, "setting");
            final Entry entry = new Entry(setting.check(value), source, origin, texts);
            entries.merge(
                    setting, entry, (old, now) -> now.source.compareTo(old.source) < 0 ? old : now);
            return this;
        }

        /** Sets a value as it is written, unless a stronger source has. */
        public <T> Builder parse(
                Setting<T> setting, List<String> texts, Source source, String origin) {
            return set(setting, setting.parse(texts), source, origin, List.copyOf(texts));
        }

        /** Sets a value as it is written in one text, unless a stronger source has. */
        public <T> Builder parse(Setting<T> setting, String text, Source source, String origin) {
            final T value = setting.parse(text);
            final List<String> texts =
                    setting.isList() ? List.of(text.strip().split("\\s+")) : List.of(text);
            return set(setting, value, source, origin, texts);
        }

        /** Takes the value of a setting, its source and origin from others. */
        public Builder copy(Setting<?> setting, Settings from) {
            final Entry entry = from.entries.get(setting);
            if (entry == null) {
                entries.remove(setting);
            } else {
                entries.put(setting, entry);
            }
            return this;
        }

        /** Gives a setting its default again. */
        public Builder without(Setting<?> setting) {
            entries.remove(setting);
            return this;
        }

        /**
         * Sets every value that an environment variable names: by the name of the setting, else by
         * a former one, else by a further variable of it.
         *
         * @throws WrongSettingsException if values are wrong, or former names of one setting differ
         */
        public Builder environment(Map<String, String> environment) {
            final List<String> problems = new ArrayList<>();
            for (Setting<?> setting : table.rows()) {
                checkFormer(setting, environment, problems);
                for (String variable : weakestFirst(setting)) {
                    if (isGiven(environment, variable)) {
                        try {
                            parse(variable, setting, environment.get(variable));
                        } catch (IllegalArgumentException e) {
                            problems.add(e.getMessage());
                        }
                    }
                }
            }
            WrongSettingsException.throwIfAny(problems);
            return this;
        }

        /** The further variables, the former names, and the name. */
        private static List<String> weakestFirst(Setting<?> setting) {
            final List<String> all = new ArrayList<>(setting.variables().reversed());
            all.addAll(all.size() - 1, setting.formerVariables());
            return all;
        }

        /** Former names that contradict each other say nothing unless the name itself does. */
        private static void checkFormer(
                Setting<?> setting, Map<String, String> environment, List<String> problems) {
            final String own = setting.variables().getFirst();
            final List<String> former =
                    setting.formerVariables().stream()
                            .filter(variable -> isGiven(environment, variable))
                            .toList();
            final Set<String> texts = new HashSet<>();
            former.forEach(variable -> texts.add(environment.get(variable).strip()));
            if (texts.size() > 1 && !isGiven(environment, own)) {
                problems.add(
                        String.join(" and ", former)
                                + ", former names of "
                                + own
                                + ", differ; set "
                                + own
                                + " alone");
            }
        }

        private static boolean isGiven(Map<String, String> environment, String variable) {
            final String text = environment.get(variable);
            return text != null && !text.isBlank() && !ServiceLinks.isOne(variable, text);
        }

        private void parse(String variable, Setting<?> setting, String text) {
            try {
                parse(setting, setting.read(variable, text.strip()), Source.ENVIRONMENT, variable);
            } catch (IllegalArgumentException e) {
                WrongSettingsException.throwIfAny(
                        e.getMessage().lines().map(line -> variable + ": " + line).toList());
            }
        }

        /** Puts the values together. */
        public Settings build() {
            return new Settings(this);
        }
    }
}
