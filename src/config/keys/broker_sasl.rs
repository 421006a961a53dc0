//! SASL and delegation tokens.

broker_keys! {
    "sasl.mechanism.controller.protocol" string "GSSAPI" any high read_only done
        "";
    "connections.max.reauth.ms" long "0" any medium read_only done
        "";
    "sasl.server.max.receive.size" int "524288" any medium read_only done
        "";
    "sasl.mechanism.inter.broker.protocol" string "GSSAPI" any medium per_broker done
        "";
    "sasl.enabled.mechanisms" list "GSSAPI" (elements) medium per_broker done
        "";
    "sasl.server.callback.handler.class" class null any medium read_only done
        "";
    "sasl.kerberos.principal.to.local.rules" list "DEFAULT" (elements) medium per_broker done
        "";
    "sasl.jaas.config" password null any medium per_broker done
        "";
    "sasl.client.callback.handler.class" class null any medium read_only done
        "";
    "sasl.login.class" class null any medium read_only done
        "";
    "sasl.login.callback.handler.class" class null any medium read_only done
        "";
    "sasl.kerberos.service.name" string null any medium per_broker done
        "";
    "sasl.kerberos.kinit.cmd" string "/usr/bin/kinit" any medium per_broker done
        "";
    "sasl.kerberos.ticket.renew.window.factor" double "0.8" any medium per_broker done
        "";
    "sasl.kerberos.ticket.renew.jitter" double "0.05" any medium per_broker done
        "";
    "sasl.kerberos.min.time.before.relogin" long "60000" any medium per_broker done
        "";
    "sasl.login.refresh.window.factor" double "0.8" any medium per_broker done
        "";
    "sasl.login.refresh.window.jitter" double "0.05" any medium per_broker done
        "";
    "sasl.login.refresh.min.period.seconds" short "60" any medium per_broker done
        "";
    "sasl.login.refresh.buffer.seconds" short "300" any medium per_broker done
        "";
    "sasl.login.connect.timeout.ms" int null any low read_only done
        "";
    "sasl.login.read.timeout.ms" int null any low read_only done
        "";
    "sasl.login.retry.backoff.max.ms" long "10000" any low read_only done
        "";
    "sasl.login.retry.backoff.ms" long "100" any low read_only done
        "";
    "sasl.oauthbearer.jwt.retriever.class" class "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever" any medium read_only done
        "";
    "sasl.oauthbearer.jwt.validator.class" class "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator" any medium read_only done
        "";
    "sasl.oauthbearer.scope" string null any medium read_only done
        "";
    "sasl.oauthbearer.client.credentials.client.id" string null any medium read_only done
        "";
    "sasl.oauthbearer.client.credentials.client.secret" password null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.algorithm" string "RS256" (one_of_any_case "ES256" "RS256") medium read_only done
        "";
    "sasl.oauthbearer.assertion.claim.aud" string null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.claim.exp.seconds" int "300" (between 0 and 86_400) low read_only done
        "";
    "sasl.oauthbearer.assertion.claim.iss" string null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.claim.jti.include" boolean "false" any medium read_only done
        "";
    "sasl.oauthbearer.assertion.claim.nbf.seconds" int "60" (between 0 and 3_600) low read_only done
        "";
    "sasl.oauthbearer.assertion.claim.sub" string null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.file" string null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.private.key.file" string null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.private.key.passphrase" password null any medium read_only done
        "";
    "sasl.oauthbearer.assertion.template.file" string null any medium read_only done
        "";
    "sasl.oauthbearer.scope.claim.name" string "scope" any low read_only done
        "";
    "sasl.oauthbearer.sub.claim.name" string "sub" any low read_only done
        "";
    "sasl.oauthbearer.token.endpoint.url" string null any medium read_only done
        "";
    "sasl.oauthbearer.jwks.endpoint.url" string null any medium read_only done
        "";
    "sasl.oauthbearer.jwks.endpoint.refresh.ms" long "3600000" any low read_only done
        "";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" long "100" any low read_only done
        "";
    "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" long "10000" any low read_only done
        "";
    "sasl.oauthbearer.clock.skew.seconds" int "30" any low read_only done
        "";
    "sasl.oauthbearer.allow.unverified.audience" boolean "false" any medium read_only done
        "";
    "sasl.oauthbearer.expected.audience" list "" (elements) high read_only done
        "";
    "sasl.oauthbearer.allow.unverified.issuer" boolean "false" any medium read_only done
        "";
    "sasl.oauthbearer.expected.issuer" string null any high read_only done
        "";
    "delegation.token.secret.key" password null any medium read_only done
        "";
    "delegation.token.max.lifetime.ms" long "604800000" (at_least 1) medium read_only done
        "";
    "delegation.token.expiry.time.ms" long "86400000" (at_least 1) medium read_only done
        "";
    "delegation.token.expiry.check.interval.ms" long "3600000" (at_least 1) low read_only done
        "";
}
