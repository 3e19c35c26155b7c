package io.kvasir.pipeline.zmtp;

/** A peer does not speak ZMTP as it should, or asks for more than it is allowed. */
final class ZmtpException extends Exception {
    private static final long serialVersionUID = 1L;

    ZmtpException(String why) {
        super(why, null, false, false);
    }
}
