package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Allocations;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

class AppendedListTest {
    /** Also of lists that others were made of before, which share their memory. */
    @Test
    void everyListStaysWhatItWasWhateverIsMadeOfIt() {
        final SplittableRandom random = new SplittableRandom(Seeds.next("AppendedListTest"));
        final List<AppendedList<String>> lists = new ArrayList<>(List.of(new AppendedList<>()));
        final List<List<String>> models = new ArrayList<>(List.of(List.of()));
        for (int step = 0; step < 3_000; step++) {
            final int of = random.nextInt(10) == 0 ? random.nextInt(lists.size()) : step;
            final List<String> model = new ArrayList<>(models.get(of));
            if (random.nextInt(4) > 0 || model.isEmpty()) {
                model.add("e" + step);
                lists.add(lists.get(of).with("e" + step));
            } else {
                final String removed = model.remove(random.nextInt(model.size()));
                lists.add(lists.get(of).without(removed));
            }
            models.add(List.copyOf(model));
        }
        assertEquals(models, lists);
    }

    @Test
    void whatIsBehindTheEndCannotBeRead() {
        final AppendedList<String> one = new AppendedList<String>().with("a");
        assertEquals(List.of("a", "b"), one.with("b"));
        assertThrows(IndexOutOfBoundsException.class, () -> one.get(1));
        assertThrows(UnsupportedOperationException.class, () -> one.add("c"));
        assertSame(one, one.without("b"));
    }

    @Test
    void oneMoreOfTenThousandCopiesNoOther() {
        final long bytes =
                Allocations.bytesOf(
                        () -> {
                            AppendedList<String> list = new AppendedList<>();
                            for (int i = 0; i < 10_000; i++) {
                                list = list.with("a");
                            }
                        });
        // a list and its share of the doublings; copies would be 20,000 bytes of references each
        assertTrue(bytes < 10_000 * 200, "bytes=" + bytes);
    }
}
