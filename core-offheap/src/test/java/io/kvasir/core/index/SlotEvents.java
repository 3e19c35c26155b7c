package io.kvasir.core.index;

import java.util.Arrays;
import java.util.Random;

/** Makes events out of few local hashes and names, so that prompts share and conflict. */
final class SlotEvents {
    /** One event of a slot; what it answers can be compared. */
    interface Event {
        Object apply(PrefixIndex index, int slot);
    }

    final Random random;
    final long[][] prompts = new long[16][];
    private final int slots;

    SlotEvents(Random random, int slots) {
        this.random = random;
        this.slots = slots;
        for (int i = 0; i < prompts.length; i++) {
            final long[] base = i == 0 ? new long[0] : prompts[random.nextInt(i)];
            final int shared = base.length == 0 ? 0 : random.nextInt(base.length);
            prompts[i] = Arrays.copyOf(base, shared + 1 + random.nextInt(14));
            for (int j = shared; j < prompts[i].length; j++) {
                prompts[i][j] = random.nextInt(3);
            }
        }
    }

    int another(int slot) {
        final int other = random.nextInt(slots - 1);
        return other < slot ? other : other + 1;
    }

    void next(PrefixIndex index, int slot) {
        make(slot).apply(index, slot);
    }

    Event make(int slot) {
        final long[] prompt = prompts[random.nextInt(prompts.length)];
        final boolean refresh = random.nextInt(4) == 0;
        return switch (random.nextInt(10)) {
            case 0, 1, 2 -> {
                final long[] locals = Arrays.copyOf(prompt, 1 + random.nextInt(prompt.length));
                final long[] names = names(prompt, 0, locals.length);
                yield (index, s) -> index.store(s, true, 0, names, locals, locals.length, refresh);
            }
            case 3, 4 -> {
                final int from = random.nextInt(prompt.length);
                final long parent = from == 0 ? 77 : names(prompt, from - 1, 1)[0];
                final int count = random.nextInt(prompt.length - from + 1);
                final long[] locals = Arrays.copyOfRange(prompt, from, from + count);
                final long[] names = names(prompt, from, count);
                yield (index, s) ->
                        index.store(s, from == 0, parent, names, locals, count, refresh);
            }
            case 5, 6, 7 -> {
                final int from = random.nextInt(prompt.length);
                final int count = 1 + random.nextInt(Math.min(3, prompt.length - from));
                final long[] names = names(prompt, from, count);
                final CopyRule rule =
                        random.nextInt(3) == 0 ? CopyRule.LAST_COPY : CopyRule.PHYSICAL;
                yield (index, s) -> index.remove(s, names, count, rule);
            }
            case 8 -> {
                final long name = names(prompt, random.nextInt(prompt.length), 1)[0];
                final int left = random.nextInt(4) - 1;
                yield (index, s) -> {
                    index.removeTo(s, name, left);
                    return left;
                };
            }
            default -> {
                if (random.nextInt(20) == 0) {
                    yield (index, s) -> index.clear(s);
                }
                yield make(slot);
            }
        };
    }

    /** Names of blocks of a prompt by what is before them; now and then an alias. */
    private long[] names(long[] prompt, int from, int count) {
        final long variant = random.nextInt(6) == 0 ? 1L << 40 : 0;
        final long[] names = new long[count];
        for (int i = 0; i < count; i++) {
            names[i] = Arrays.hashCode(Arrays.copyOf(prompt, from + i + 1)) + variant;
        }
        return names;
    }
}
