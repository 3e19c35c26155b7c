package io.kvasir.host;

import java.io.IOException;

/** The client of a request is not there any more. */
public final class ClientLeftException extends IOException {
    private static final long serialVersionUID = 1L;

    ClientLeftException(Throwable cause) {
        super("the client has left", cause);
    }
}
