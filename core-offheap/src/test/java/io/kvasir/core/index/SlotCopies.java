package io.kvasir.core.index;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Copies of what a slot holds, through lists of what an export shows; for tests. */
public final class SlotCopies {
    private SlotCopies() {}

    /** One path or one number of copies. */
    private record Shown(
            SlotPath.Parent kind,
            long parent,
            List<Long> locals,
            List<Long> names,
            long engineHash,
            int copies) {}

    /** What an export has shown. */
    public static final class Content implements SlotVisitor {
        private final List<Shown> shown = new ArrayList<>();
        private long blocks;
        private long holes;
        private long missing;
        private long turnover;
        private CopyRule rule;

        @Override
        public void path(SlotPath path) {
            final List<Long> locals = new ArrayList<>();
            final List<Long> names = new ArrayList<>();
            for (int i = 0; i < path.count(); i++) {
                locals.add(path.localHash(i));
                names.add(path.isHeld(i) ? path.engineHash(i) : null);
            }
            blocks += path.count() - path.holes();
            holes += path.holes();
            shown.add(new Shown(path.parentKind(), path.parent(), locals, names, 0, 0));
        }

        @Override
        public void copies(long engineHash, int copies) {
            shown.add(new Shown(null, 0, List.of(), List.of(), engineHash, copies));
        }

        /** Held blocks, aliases too. */
        public long blocks() {
            return blocks;
        }

        /** Holes. */
        public long holes() {
            return holes;
        }
    }

    /** Exports a slot; something may be done to other slots between any two slices. */
    public static Content export(PrefixIndex index, int slot, int blocks, Runnable between) {
        final Content content = new Content();
        try (SlotExport export = index.export(slot)) {
            while (export.show(blocks, content)) {
                between.run();
            }
            content.missing = index.missingBlocks(slot);
            content.turnover = index.turnover(slot);
            content.rule = index.removalRule(slot);
        }
        return content;
    }

    /** Imports into an empty slot; something may be done to other slots in between. */
    public static void importInto(PrefixIndex index, int slot, Content content, Runnable between) {
        final SlotImport into = index.importInto(slot);
        final SlotPath path = new SlotPath();
        for (Shown shown : content.shown) {
            if (shown.kind == null) {
                into.copies(shown.engineHash, shown.copies);
            } else {
                path.begin(shown.kind, shown.parent);
                for (int i = 0; i < shown.locals.size(); i++) {
                    if (shown.names.get(i) == null) {
                        path.addHole(shown.locals.get(i));
                    } else {
                        path.addBlock(shown.locals.get(i), shown.names.get(i));
                    }
                }
                assertTrue(into.path(path), "the import contradicts itself");
            }
            between.run();
        }
        while (into.removeHoles(1)) {
            between.run();
        }
        into.end(content.missing, content.turnover, content.rule);
    }

    /** All that a slot holds: engine hash, sequence hash, copies. */
    public static Set<List<Long>> contents(PrefixIndex index, int slot) {
        final Set<List<Long>> found = new HashSet<>();
        index.forEach(
                (s, engineHash, sequenceHash, copies) -> {
                    if (s == slot) {
                        found.add(List.of(engineHash, sequenceHash, (long) copies));
                    }
                });
        return found;
    }
}
