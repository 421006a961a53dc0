//! TLS.

broker_keys! {
    "security.providers" string null any low read_only (ignored NO_TLS)
        "Classes that provide security algorithms.";
    "ssl.client.auth" string "none" (one_of "required" "requested" "none") medium per_broker (ignored NO_TLS)
        "Whether clients must show a certificate.";
    "ssl.principal.mapping.rules" string "DEFAULT" any low read_only (ignored NO_TLS)
        "Rules that turn a certificate's name into a user.";
    "ssl.allow.dn.changes" boolean "false" any low read_only (ignored NO_TLS)
        "A new certificate may have another distinguished name.";
    "ssl.allow.san.changes" boolean "false" any low read_only (ignored NO_TLS)
        "A new certificate may have other alternative names.";
    "ssl.protocol" string "TLSv1.3" any medium per_broker (ignored NO_TLS)
        "TLS version that is tried first.";
    "ssl.provider" string null any medium per_broker (ignored NO_TLS)
        "Security provider of the JVM.";
    "ssl.enabled.protocols" list "TLSv1.2,TLSv1.3" (elements) medium per_broker (ignored NO_TLS)
        "TLS versions that are allowed.";
    "ssl.keystore.type" string "JKS" any medium per_broker (ignored NO_TLS)
        "Format of the key store.";
    "ssl.keystore.location" string null any medium per_broker (ignored NO_TLS)
        "File of the key store.";
    "ssl.keystore.password" password null any medium per_broker (ignored NO_TLS)
        "Password of the key store.";
    "ssl.key.password" password null any medium per_broker (ignored NO_TLS)
        "Password of the private key.";
    "ssl.keystore.key" password null any medium per_broker (ignored NO_TLS)
        "Private key in PEM format.";
    "ssl.keystore.certificate.chain" password null any medium per_broker (ignored NO_TLS)
        "Certificate chain in PEM format.";
    "ssl.truststore.type" string "JKS" any medium per_broker (ignored NO_TLS)
        "Format of the trust store.";
    "ssl.truststore.location" string null any medium per_broker (ignored NO_TLS)
        "File of the trust store.";
    "ssl.truststore.password" password null any medium per_broker (ignored NO_TLS)
        "Password of the trust store.";
    "ssl.truststore.certificates" password null any medium per_broker (ignored NO_TLS)
        "Trusted certificates in PEM format.";
    "ssl.keymanager.algorithm" string "SunX509" any medium per_broker (ignored NO_TLS)
        "Key manager of the JVM.";
    "ssl.trustmanager.algorithm" string "PKIX" any medium per_broker (ignored NO_TLS)
        "Trust manager of the JVM.";
    "ssl.endpoint.identification.algorithm" string "https" any low per_broker (ignored NO_TLS)
        "How a server's name is checked against its certificate.";
    "ssl.secure.random.implementation" string null any low per_broker (ignored NO_TLS)
        "Random generator of the JVM.";
    "ssl.cipher.suites" list "" (elements) medium per_broker (ignored NO_TLS)
        "Cipher suites that are allowed.";
    "ssl.engine.factory.class" class null any low per_broker (ignored NO_TLS)
        "Class that makes TLS engines.";
}
