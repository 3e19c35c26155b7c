package io.kvasir.gateway.server;

import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;

import java.nio.ByteBuffer;

/**
 * The response of a request that was let in: has it count as one that is under way while the client
 * has yet to take the answer's last bytes.
 */
public final class AdmittedResponse extends Response.Wrapper {
    private final AdmissionGate.Admission admission;

    /** A response of a request and its admission. */
    public AdmittedResponse(Request request, Response response, AdmissionGate.Admission admission) {
        super(request, response);
        this.admission = admission;
    }

    @Override
    public void write(boolean last, ByteBuffer bytes, Callback callback) {
        if (!last) {
            super.write(false, bytes, callback);
            return;
        }
        final LastWrite write = new LastWrite(callback);
        super.write(true, bytes, write);
        if (!write.over) { // what a connection takes at once never counts: its client may be next
            admission.unread();
        }
    }

    private static final class LastWrite extends Callback.Nested {
        private volatile boolean over;

        LastWrite(Callback callback) {
            super(callback);
        }

        @Override
        public void succeeded() {
            over = true;
            super.succeeded();
        }

        @Override
        public void failed(Throwable cause) {
            over = true;
            super.failed(cause);
        }
    }
}
