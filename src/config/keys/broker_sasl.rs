//! SASL and delegation tokens.

broker_keys! {
    "sasl.mechanism.controller.protocol" string "GSSAPI" any high read_only (ignored NO_SASL)
        "Mechanism towards controllers.";
    "connections.max.reauth.ms" long "0" any medium read_only (ignored NO_SASL)
        "A client must authenticate again after so long.";
    "sasl.server.max.receive.size" int "524288" any medium read_only (ignored NO_SASL)
        "Largest message while a client authenticates.";
    "sasl.mechanism.inter.broker.protocol" string "GSSAPI" any medium per_broker (ignored NO_SASL)
        "Mechanism between brokers.";
    "sasl.enabled.mechanisms" list "GSSAPI" (elements) medium per_broker (ignored NO_SASL)
        "Mechanisms that are offered.";
    "sasl.server.callback.handler.class" class null any medium read_only (ignored NO_SASL)
        "Class that checks credentials.";
    "sasl.kerberos.principal.to.local.rules" list "DEFAULT" (elements) medium per_broker (ignored NO_SASL)
        "Rules that shorten a principal to a user.";
    "sasl.jaas.config" password null any medium per_broker (ignored NO_SASL)
        "Login settings in JAAS format.";
    "sasl.client.callback.handler.class" class null any medium read_only (ignored NO_SASL)
        "Class that gives credentials for outgoing connections.";
    "sasl.login.class" class null any medium read_only (ignored NO_SASL)
        "Class that logs in.";
    "sasl.login.callback.handler.class" class null any medium read_only (ignored NO_SASL)
        "Class that gives credentials for the login.";
    "sasl.kerberos.service.name" string null any medium per_broker (ignored NO_SASL)
        "Kerberos name of the service.";
    "sasl.kerberos.kinit.cmd" string "/usr/bin/kinit" any medium per_broker (ignored NO_SASL)
        "Path of kinit.";
    "sasl.kerberos.ticket.renew.window.factor" double "0.8" any medium per_broker (ignored NO_SASL)
        "Part of a ticket's life after which it is renewed.";
    "sasl.kerberos.ticket.renew.jitter" double "0.05" any medium per_broker (ignored NO_SASL)
        "Random part of that time.";
    "sasl.kerberos.min.time.before.relogin" long "60000" any medium per_broker (ignored NO_SASL)
        "Shortest time between two logins.";
    "sasl.login.refresh.window.factor" double "0.8" any medium per_broker (ignored NO_SASL)
        "Part of a credential's life after which it is refreshed.";
    "sasl.login.refresh.window.jitter" double "0.05" any medium per_broker (ignored NO_SASL)
        "Random part of that time.";
    "sasl.login.refresh.min.period.seconds" short "60" any medium per_broker (ignored NO_SASL)
        "Shortest time between two refreshes.";
    "sasl.login.refresh.buffer.seconds" short "300" any medium per_broker (ignored NO_SASL)
        "Time before the end of a credential in which it must have been refreshed.";
    "sasl.login.connect.timeout.ms" int null any low read_only (ignored NO_SASL)
        "How long a connection to the provider may take to open.";
    "sasl.login.read.timeout.ms" int null any low read_only (ignored NO_SASL)
        "How long the provider may take to answer.";
    "sasl.login.retry.backoff.max.ms" long "10000" any low read_only (ignored NO_SASL)
        "Longest pause between login attempts.";
    "sasl.login.retry.backoff.ms" long "100" any low read_only (ignored NO_SASL)
        "First pause between login attempts.";
    "sasl.oauthbearer.jwt.retriever.class" class "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever" any medium read_only (ignored NO_SASL)
        "Class that fetches tokens.";
    "sasl.oauthbearer.jwt.validator.class" class "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator" any medium read_only (ignored NO_SASL)
        "Class that checks tokens.";
    "sasl.oauthbearer.scope" string null any medium read_only (ignored NO_SASL)
        "Scope asked for at the token endpoint.";
    "sasl.oauthbearer.client.credentials.client.id" string null any medium read_only (ignored NO_SASL)
        "Client id at the token endpoint.";
    "sasl.oauthbearer.client.credentials.client.secret" password null any medium read_only (ignored NO_SASL)
        "Client secret at the token endpoint.";
    "sasl.oauthbearer.assertion.algorithm" string "RS256" (one_of_any_case "ES256" "RS256") medium read_only (ignored NO_SASL)
        "Signature algorithm of assertions.";
    "sasl.oauthbearer.assertion.claim.aud" string null any medium read_only (ignored NO_SASL)
        "Audience of assertions.";
    "sasl.oauthbearer.assertion.claim.exp.seconds" int "300" (between 0 and 86_400) low read_only (ignored NO_SASL)
        "Life of assertions.";
    "sasl.oauthbearer.assertion.claim.iss" string null any medium read_only (ignored NO_SASL)
        "Issuer of assertions.";
    "sasl.oauthbearer.assertion.claim.jti.include" boolean "false" any medium read_only (ignored NO_SASL)
        "Give each assertion an id.";
    "sasl.oauthbearer.assertion.claim.nbf.seconds" int "60" (between 0 and 3_600) low read_only (ignored NO_SASL)
        "How far back an assertion begins to be valid.";
    "sasl.oauthbearer.assertion.claim.sub" string null any medium read_only (ignored NO_SASL)
        "Subject of assertions.";
    "sasl.oauthbearer.assertion.file" string null any medium read_only (ignored NO_SASL)
        "File with a ready assertion.";
    "sasl.oauthbearer.assertion.private.key.file" string null any medium read_only (ignored NO_SASL)
        "Key with which assertions are signed.";
    "sasl.oauthbearer.assertion.private.key.passphrase" password null any medium read_only (ignored NO_SASL)
        "Passphrase of that key.";
    "sasl.oauthbearer.assertion.template.file" string null any medium read_only (ignored NO_SASL)
        "Template of assertions.";
    "sasl.oauthbearer.scope.claim.name" string "scope" any low read_only (ignored NO_SASL)
        "Claim that holds the scope.";
    "sasl.oauthbearer.sub.claim.name" string "sub" any low read_only (ignored NO_SASL)
        "Claim that holds the subject.";
    "sasl.oauthbearer.token.endpoint.url" string null any medium read_only (ignored NO_SASL)
        "Where tokens are fetched.";
    "sasl.oauthbearer.jwks.endpoint.url" string null any medium read_only (ignored NO_SASL)
        "Where the keys that sign tokens are fetched.";
    "sasl.oauthbearer.jwks.endpoint.refresh.ms" long "3600000" any low read_only (ignored NO_SASL)
        "How often those keys are fetched.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" long "100" any low read_only (ignored NO_SASL)
        "First pause between attempts to fetch them.";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" long "10000" any low read_only (ignored NO_SASL)
        "Longest pause between such attempts.";
    "sasl.oauthbearer.clock.skew.seconds" int "30" any low read_only (ignored NO_SASL)
        "Difference of clocks that is tolerated.";
    "sasl.oauthbearer.allow.unverified.audience" boolean "false" any medium read_only (ignored NO_SASL)
        "Accept tokens although no audience is expected.";
    "sasl.oauthbearer.expected.audience" list "" (elements) high read_only (ignored NO_SASL)
        "Audiences that are accepted.";
    "sasl.oauthbearer.allow.unverified.issuer" boolean "false" any medium read_only (ignored NO_SASL)
        "Accept tokens although no issuer is expected.";
    "sasl.oauthbearer.expected.issuer" string null any high read_only (ignored NO_SASL)
        "Issuer that is accepted.";
    "delegation.token.secret.key" password null any medium read_only (ignored NO_DELEGATION_TOKENS)
        "Secret with which delegation tokens are made.";
    "delegation.token.max.lifetime.ms" long "604800000" (at_least 1) medium read_only (ignored NO_DELEGATION_TOKENS)
        "Longest life of a token.";
    "delegation.token.expiry.time.ms" long "86400000" (at_least 1) medium read_only (ignored NO_DELEGATION_TOKENS)
        "Life of a token that is not renewed.";
    "delegation.token.expiry.check.interval.ms" long "3600000" (at_least 1) low read_only (ignored NO_DELEGATION_TOKENS)
        "How often expired tokens are looked for.";
}
