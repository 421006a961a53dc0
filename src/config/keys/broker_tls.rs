//! TLS.

broker_keys! {
    "security.providers" string null any low read_only done
        "";
    "ssl.client.auth" string "none" (one_of "required" "requested" "none") medium per_broker done
        "";
    "ssl.principal.mapping.rules" string "DEFAULT" any low read_only done
        "";
    "ssl.allow.dn.changes" boolean "false" any low read_only done
        "";
    "ssl.allow.san.changes" boolean "false" any low read_only done
        "";
    "ssl.protocol" string "TLSv1.3" any medium per_broker done
        "";
    "ssl.provider" string null any medium per_broker done
        "";
    "ssl.enabled.protocols" list "TLSv1.2,TLSv1.3" (elements) medium per_broker done
        "";
    "ssl.keystore.type" string "JKS" any medium per_broker done
        "";
    "ssl.keystore.location" string null any medium per_broker done
        "";
    "ssl.keystore.password" password null any medium per_broker done
        "";
    "ssl.key.password" password null any medium per_broker done
        "";
    "ssl.keystore.key" password null any medium per_broker done
        "";
    "ssl.keystore.certificate.chain" password null any medium per_broker done
        "";
    "ssl.truststore.type" string "JKS" any medium per_broker done
        "";
    "ssl.truststore.location" string null any medium per_broker done
        "";
    "ssl.truststore.password" password null any medium per_broker done
        "";
    "ssl.truststore.certificates" password null any medium per_broker done
        "";
    "ssl.keymanager.algorithm" string "SunX509" any medium per_broker done
        "";
    "ssl.trustmanager.algorithm" string "PKIX" any medium per_broker done
        "";
    "ssl.endpoint.identification.algorithm" string "https" any low per_broker done
        "";
    "ssl.secure.random.implementation" string null any low per_broker done
        "";
    "ssl.cipher.suites" list "" (elements) medium per_broker done
        "";
    "ssl.engine.factory.class" class null any low per_broker done
        "";
}
