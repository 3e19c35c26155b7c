package io.kvasir.nixl.engine;

/**
 * Nanoseconds of a request as {@code a · pieces + b · bytes}, by least squares that forget: each
 * request weighs {@value #KEPT} of the one after it. Normal equations of two unknowns; where they
 * cannot be told apart (all requests have pieces of one size), the sum of both is right all the
 * same. One thread learns, any may ask.
 */
final class LinkCost {
    private static final double KEPT = 0.98;

    /** Below this share of the product of the diagonal, the two unknowns cannot be told apart. */
    private static final double SINGULAR = 1e-6;

    private double piecesPieces;
    private double piecesBytes;
    private double bytesBytes;
    private double piecesNs;
    private double bytesNs;

    private volatile double perPiece = Double.NaN;
    private volatile double perByte = Double.NaN;

    void learn(long pieces, long bytes, long ns) {
        piecesPieces = piecesPieces * KEPT + (double) pieces * pieces;
        piecesBytes = piecesBytes * KEPT + (double) pieces * bytes;
        bytesBytes = bytesBytes * KEPT + (double) bytes * bytes;
        piecesNs = piecesNs * KEPT + (double) pieces * ns;
        bytesNs = bytesNs * KEPT + (double) bytes * ns;
        solve();
    }

    private void solve() {
        final double diagonal = piecesPieces * bytesBytes;
        final double determinant = diagonal - piecesBytes * piecesBytes;
        double piece = 0;
        double single = bytesNs / bytesBytes;
        if (determinant > SINGULAR * diagonal) {
            final double bothPiece = (piecesNs * bytesBytes - bytesNs * piecesBytes) / determinant;
            final double bothByte = (bytesNs * piecesPieces - piecesNs * piecesBytes) / determinant;
            if (bothByte < 0) { // only the pieces count
                piece = piecesNs / piecesPieces;
                single = 0;
            } else if (bothPiece >= 0) {
                piece = bothPiece;
                single = bothByte;
            }
        }
        perPiece = piece;
        perByte = single;
    }

    double expectedNs(long pieces, long bytes) {
        return perPiece * pieces + perByte * bytes;
    }
}
