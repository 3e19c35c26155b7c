package io.kvasir.nats;

import io.nats.client.NKey;
import io.nats.client.support.JsonSerializable;
import io.nats.client.support.JwtUtils;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;

/** An operator, its accounts, of which one is without limits, and a user of that one. */
final class TestUser {
    private static final String UNLIMITED =
            "\"limits\":{\"subs\":-1,\"data\":-1,\"payload\":-1,\"imports\":-1,\"exports\":-1,"
                    + "\"wildcards\":true,\"conn\":-1,\"leaf\":-1,\"mem_storage\":-1,"
                    + "\"disk_storage\":-1,\"streams\":-1,\"consumer\":-1}";

    private final String settings;
    private final String credentials;

    /** Makes their keys. */
    TestUser() throws GeneralSecurityException, IOException {
        final SecureRandom random = new SecureRandom();
        final NKey operator = NKey.createOperator(random);
        final NKey account = NKey.createAccount(random);
        final NKey user = NKey.createUser(random);
        final NKey system = NKey.createAccount(random);
        final String id = new String(account.getPublicKey());
        final String systemId = new String(system.getPublicKey());
        settings =
                "operator: "
                        + claim(operator, operator, "\"type\":\"operator\"")
                        + "\nresolver: MEMORY\nsystem_account: "
                        + systemId
                        + "\nresolver_preload: { "
                        + id
                        + ": "
                        + claim(operator, account, "\"type\":\"account\"," + UNLIMITED)
                        + ", "
                        + systemId
                        + ": "
                        + claim(operator, system, "\"type\":\"account\"")
                        + " }\n";
        credentials =
                String.format(
                        JwtUtils.NATS_USER_JWT_FORMAT,
                        JwtUtils.issueUserJWT(account, id, new String(user.getPublicKey())),
                        new String(user.getSeed()));
    }

    private static String claim(NKey by, NKey of, String what)
            throws GeneralSecurityException, IOException {
        final JsonSerializable body = () -> "{" + what + ",\"version\":2}";
        return JwtUtils.issueJWT(
                by,
                new String(of.getPublicKey()),
                "test",
                null,
                JwtUtils.currentTimeSeconds(),
                new String(by.getPublicKey()),
                body);
    }

    /** Settings of a server that lets in this user only. */
    String settings() {
        return settings;
    }

    /** Writes the user's JWT and seed. */
    Path credentials(Path file) throws IOException {
        return Files.writeString(file, credentials);
    }
}
