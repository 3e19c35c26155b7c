package io.kvasir.gateway.trace;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Whether a key is that of a certificate, which TLS itself leaves to the other end. Stateless. */
final class KeyPairs {
    private static final Pattern KEY =
            Pattern.compile("-----BEGIN PRIVATE KEY-----(.*?)-----END", Pattern.DOTALL);

    private static final byte[] SIGNED = {1};

    private KeyPairs() {}

    /**
     * Has the key sign something and the certificate verify it.
     *
     * @param key PKCS #8, as PEM or DER
     * @param certificates PEM or DER; the first one counts
     * @throws GeneralSecurityException if they do not go together, or one of them is damaged;
     *     nothing of the key is in its message
     */
    static void check(byte[] key, byte[] certificates) throws GeneralSecurityException {
        final PublicKey shown =
                CertificateFactory.getInstance("X.509")
                        .generateCertificates(new ByteArrayInputStream(certificates))
                        .iterator()
                        .next()
                        .getPublicKey();
        final String signature =
                switch (shown.getAlgorithm()) {
                    case "RSA" -> "SHA256withRSA";
                    case "EC" -> "SHA256withECDSA";
                    default -> null;
                };
        if (signature == null) { // another kind of key
            return;
        }
        final PrivateKey secret =
                KeyFactory.getInstance(shown.getAlgorithm())
                        .generatePrivate(new PKCS8EncodedKeySpec(der(key)));
        final Signature signing = Signature.getInstance(signature);
        signing.initSign(secret);
        signing.update(SIGNED);
        final byte[] signed = signing.sign();
        signing.initVerify(shown);
        signing.update(SIGNED);
        if (!signing.verify(signed)) {
            throw new InvalidKeyException("it is the key of another certificate");
        }
    }

    private static byte[] der(byte[] key) {
        final Matcher pem = KEY.matcher(new String(key, StandardCharsets.ISO_8859_1));
        return pem.find() ? Base64.getMimeDecoder().decode(pem.group(1)) : key;
    }
}
