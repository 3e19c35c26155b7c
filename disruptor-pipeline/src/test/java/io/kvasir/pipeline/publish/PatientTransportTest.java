package io.kvasir.pipeline.publish;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.pipeline.wire.KvBatch;

import org.junit.jupiter.api.Test;

import java.io.IOException;

class PatientTransportTest {
    private PatientTransport patient;
    private IOException failure;
    private String problem;

    /** Fails once, and is closed with that. */
    private final class Failing implements RouterEventTransport {
        @Override
        public void publish(long workerId, int dpRank, long firstEventId, KvBatch events)
                throws IOException {
            problem = patient.problem();
            if (!problem.isEmpty()) {
                patient.close();
            }
            throw failure;
        }

        @Override
        public void close() {}
    }

    @Test
    void aProblemHasWordsWhereTheFailureHasNone() {
        patient = new PatientTransport(new Failing());
        failure = new IOException();
        assertThrows(IOException.class, () -> patient.publish(1, 0, 1, new KvBatch()));
        assertEquals("it failed without a reason", problem);
        assertEquals(2, patient.failures());
    }

    @Test
    void eventsThatAreLostSayWhyInWords() throws IOException {
        patient = new PatientTransport(new Failing());
        failure = new UnpublishableException(null, new IOException("message too large"));
        patient.publish(1, 0, 1, new KvBatch());
        assertEquals("message too large", patient.problem());
    }
}
