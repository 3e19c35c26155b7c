package io.kvasir.nixl.vllm;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;

class VllmNotificationTest {
    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    @ParameterizedTest
    @CsvSource({"cmpl-golden-1-0-a2c7c6e1, 1", "a:b:c, 16", "'', 2", "ключ, 999999999"})
    void aCompletionIsTheNameAndACountAfterTheLastColon(String id, int consumers) {
        final VllmNotification.Completion completion =
                new VllmNotification.Completion(id, consumers);
        assertArrayEquals(utf8(id + ":" + consumers), completion.encode());
        assertEquals(completion, VllmNotification.parse(completion.encode()));
        assertEquals(
                completion,
                VllmNotification.parse(MemorySegment.ofArray(completion.encode()).asReadOnly()));
    }

    @Test
    void aHeartbeatListsNames() {
        final VllmNotification.Heartbeat heartbeat =
                new VllmNotification.Heartbeat(List.of("cmpl-a:1", "b"));
        assertArrayEquals(utf8("HB:cmpl-a:1,b"), heartbeat.encode());
        assertEquals(heartbeat, VllmNotification.parse(heartbeat.encode()));
        assertEquals(
                new VllmNotification.Heartbeat(List.of()), VllmNotification.parse(utf8("HB:")));
        assertEquals(
                new VllmNotification.Heartbeat(List.of("a", "b")),
                VllmNotification.parse(utf8("HB:,a,,b,")));
    }

    @Test
    void namesThatWouldBeTakenForSomethingElseAreRefused() {
        assertThrows(
                IllegalArgumentException.class,
                () -> new VllmNotification.Heartbeat(List.of("a", "b,c")));
        assertThrows(
                IllegalArgumentException.class, () -> new VllmNotification.Heartbeat(List.of("")));
        assertThrows(
                IllegalArgumentException.class, () -> new VllmNotification.Completion("HB:a", 1));
        assertThrows(
                IllegalArgumentException.class,
                () -> new VllmNotification.Completion("PUSH_REG:a", 1));
        assertThrows(IllegalArgumentException.class, () -> new VllmNotification.Completion("a", 0));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "a",
                "a:",
                "a:0",
                "a:-1",
                "a: 1",
                "a:1x",
                "a:9999999999",
                "PUSH_REG:",
                "PUSH_REG:1"
            })
    void whatIsNoneOfThemIsKeptAsItIs(String text) {
        final VllmNotification.Unknown unknown =
                assertInstanceOf(
                        VllmNotification.Unknown.class, VllmNotification.parse(utf8(text)));
        assertArrayEquals(utf8(text), unknown.encode());
    }

    @Test
    void textThatIsNoUtf8IsUnknown() {
        final byte[] message = {'a', (byte) 0xff, ':', '1'};
        assertArrayEquals(message, VllmNotification.parse(message).encode());
    }

    @Test
    void aPushRegistrationKeepsFieldsThatAreNotKnown() {
        final byte[] message = Golden.bytes("push-registration.bin");
        final VllmNotification.PushRegistration registration =
                assertInstanceOf(
                        VllmNotification.PushRegistration.class, VllmNotification.parse(message));
        assertEquals("cmpl-d-1-0-0badcafe", registration.requestId());
        assertEquals(
                new VllmNotification.Endpoint("decode-1", "10.0.0.2", 5_601, 1),
                registration.decode());
        assertEquals(
                new VllmNotification.Endpoint("prefill-1", "10.0.0.1", 5_600, 1),
                registration.prefill());
        assertEquals(List.of(List.of(3, 4, 5), List.of(70_000)), registration.blocks());
        assertEquals(1, registration.prefillPipelineRanks());
        assertEquals(Set.of("remote_hint"), registration.others().keySet());
        assertArrayEquals(message, registration.encode());
    }

    @Test
    void blocksOfAPushRegistrationMayBeFlat() {
        final VllmNotification.PushRegistration grouped =
                (VllmNotification.PushRegistration)
                        VllmNotification.parse(Golden.bytes("push-registration.bin"));
        final VllmNotification.PushRegistration flat =
                new VllmNotification.PushRegistration(
                        grouped.requestId(),
                        grouped.decode(),
                        List.of(),
                        grouped.prefill(),
                        2,
                        Map.of());
        assertEquals(flat, VllmNotification.parse(flat.encode()));
        final byte[] key = utf8("local_block_ids");
        final byte[] empty = flat.encode();
        int at = 0;
        while (!Arrays.equals(empty, at, at + key.length, key, 0, key.length)) {
            at++;
        }
        at += key.length;
        final byte[] message = Arrays.copyOf(empty, empty.length + 2);
        message[at] = (byte) 0x92; // an array of two
        message[at + 1] = 7;
        message[at + 2] = 8;
        System.arraycopy(empty, at + 1, message, at + 3, empty.length - at - 1);
        assertEquals(
                List.of(List.of(7, 8)),
                ((VllmNotification.PushRegistration) VllmNotification.parse(message)).blocks());
    }

    @Test
    void noBytesMakeItFail() {
        final long seed = Long.getLong("seed", 20_261_121L);
        final Random random = new Random(seed);
        final byte[][] starts = {
            Golden.bytes("push-registration.bin"), utf8("HB:a,b"), utf8("id:1"), utf8("PUSH_REG:")
        };
        for (int i = 0; i < 20_000; i++) {
            final byte[] start = starts[random.nextInt(starts.length)];
            final byte[] message =
                    Arrays.copyOf(start, random.nextInt(start.length + random.nextInt(1, 40)));
            for (int hits = random.nextInt(6); hits > 0 && message.length > 0; hits--) {
                message[random.nextInt(message.length)] = (byte) random.nextInt();
            }
            final VllmNotification parsed = VllmNotification.parse(message);
            if (!(parsed instanceof VllmNotification.Completion(String id, int consumers))) {
                assertEquals(parsed, VllmNotification.parse(parsed.encode()), "seed " + seed);
            } else {
                assertEquals(parsed, VllmNotification.parse(utf8(id + ":" + consumers)));
            }
        }
    }

    @Test
    void deepNestingAndHugeSizesCostNothing() {
        final byte[] deep = new byte[1 << 16];
        Arrays.fill(deep, (byte) 0x91);
        final byte[] prefix = utf8("PUSH_REG:");
        System.arraycopy(prefix, 0, deep, 0, prefix.length);
        deep[prefix.length] = (byte) 0x81;
        deep[prefix.length + 1] = (byte) 0xa1;
        deep[prefix.length + 2] = 'x';
        assertInstanceOf(VllmNotification.Unknown.class, VllmNotification.parse(deep));
        final byte[] huge = utf8("PUSH_REG:\u0001blocks");
        huge[prefix.length] = (byte) 0xdf; // a map of as many pairs as the next four bytes say
        assertInstanceOf(VllmNotification.Unknown.class, VllmNotification.parse(huge));
    }
}
