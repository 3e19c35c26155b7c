package io.kvasir.router.journal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.source.IndexState;
import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.file.Files;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/** {@code docs/spec/decision-journal.md} gives each word the type that it is written with. */
class JournalDocumentTest {
    private static final Pattern TABLE = Pattern.compile("(?ms)^\\| (\\w+), word .*?\\n\\n");
    private static final Pattern ROW =
            Pattern.compile("(?m)^\\| ([\\d, –]+) \\| ([^|]+) \\| [^\n]+ \\|$");
    private static final Pattern WORDS = Pattern.compile("(\\d+)(?:–(\\d+))?");
    private static final double VALUE = 1.5;

    @Test
    void eachWordOfTheHeadHasAType() throws IOException {
        final Set<Integer> all = new TreeSet<>();
        for (String type : new String[] {"i64", "u64", "f64", "text", "2 × i32"}) {
            for (int word : words("Head", type)) {
                assertTrue(all.add(word), "twice: word " + word);
            }
        }
        assertEquals(JournalDescriptor.HEAD_WORDS, all.size(), all.toString());
    }

    @Test
    void theWordsWithAFractionAreThoseThatTheDocumentSays() throws IOException {
        final JournalRecord record = new JournalRecord(1);
        record.begin(1, 1, JournalRecord.shortText("kv"), VALUE, VALUE);
        record.fleet(1, 1, VALUE);
        record.add(
                JournalRecord.name("w"), 1, IndexState.EXACT, VALUE, VALUE, 1, 1, 1, 1, VALUE, 1);
        assertEquals(words("Head", "f64"), fractions(record, 0, JournalDescriptor.HEAD_WORDS));
        assertEquals(
                words("Candidate", "f64"),
                fractions(record, JournalDescriptor.HEAD_WORDS, JournalDescriptor.CANDIDATE_WORDS));
    }

    @Test
    void theWordsOfTwoNumbersAreThoseThatTheDocumentSays() throws IOException {
        final JournalRecord record = new JournalRecord(1);
        record.add(JournalRecord.name("w"), 1, IndexState.EXACT, 0, 0, 1, 1, 1, 1, 0, 1);
        final long[] before = record.words().clone();
        record.tiers(1, 1, 1);
        final Set<Integer> changed = new TreeSet<>();
        for (int word = 0; word < JournalDescriptor.CANDIDATE_WORDS; word++) {
            final int at = JournalDescriptor.HEAD_WORDS + word;
            if (before[at] != record.words()[at]) {
                changed.add(word);
            }
        }
        assertEquals(words("Candidate", "2 × i32"), changed);
    }

    private static Set<Integer> fractions(JournalRecord record, int from, int count) {
        final Set<Integer> found = new TreeSet<>();
        for (int word = 0; word < count; word++) {
            if (record.words()[from + word] == Double.doubleToRawLongBits(VALUE)) {
                found.add(word);
            }
        }
        return found;
    }

    /** The words of a record that the table of a name gives a type. */
    private static Set<Integer> words(String name, String type) throws IOException {
        final Set<Integer> words = new TreeSet<>();
        final String page = Files.readString(Documents.file("docs/spec/decision-journal.md"));
        for (MatchResult table : TABLE.matcher(page).results().toList()) {
            if (table.group(1).equals(name)) {
                ROW.matcher(table.group()).results().forEach(row -> collect(row, type, words));
            }
        }
        return words;
    }

    private static void collect(MatchResult row, String type, Set<Integer> words) {
        if (!row.group(2).equals(type)) {
            return;
        }
        for (MatchResult range : WORDS.matcher(row.group(1)).results().toList()) {
            final int from = Integer.parseInt(range.group(1));
            final int to = range.group(2) == null ? from : Integer.parseInt(range.group(2));
            for (int word = from; word <= to; word++) {
                words.add(word);
            }
        }
    }
}
