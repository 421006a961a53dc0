//! Listeners, connections, requests, and who may ask.

broker_keys! {
    "num.io.threads" int "8" (at_least 1) high cluster_wide done
        "";
    "background.threads" int "10" (at_least 1) high cluster_wide done
        "";
    "request.timeout.ms" int "30000" any high read_only done
        "";
    "socket.connection.setup.timeout.ms" long "10000" any medium read_only done
        "";
    "socket.connection.setup.timeout.max.ms" long "30000" any medium read_only done
        "";
    "authorizer.class.name" string "" non_null low read_only done
        "";
    "early.start.listeners" list null null_or_elements high read_only done
        "";
    "max.incremental.fetch.session.cache.slots" int "1000" (at_least 0) medium read_only done
        "";
    "fetch.max.bytes" int "57671680" (at_least 1024) medium read_only done
        "";
    "max.request.partition.size.limit" int "2000" (at_least 1) medium read_only done
        "";
    "listeners" list "PLAINTEXT://:9092" (some_elements) high per_broker done
        "";
    "advertised.listeners" list null null_or_some_elements high read_only done
        "";
    "listener.security.protocol.map" string "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT" any low per_broker done
        "";
    "socket.send.buffer.bytes" int "102400" any high read_only done
        "";
    "socket.receive.buffer.bytes" int "102400" any high read_only done
        "";
    "socket.request.max.bytes" int "104857600" (at_least 1) high read_only done
        "";
    "socket.listen.backlog.size" int "50" (at_least 1) medium read_only done
        "";
    "max.connections.per.ip" int "2147483647" (at_least 0) medium cluster_wide done
        "";
    "max.connections.per.ip.overrides" string "" any medium cluster_wide done
        "";
    "max.connections" int "2147483647" (at_least 0) medium cluster_wide done
        "";
    "max.connection.creation.rate" int "2147483647" (at_least 0) medium cluster_wide done
        "";
    "connections.max.idle.ms" long "600000" any medium read_only done
        "";
    "connection.failed.authentication.delay.ms" int "100" (at_least 0) low read_only done
        "";
    "queued.max.requests" int "500" (at_least 1) high read_only done
        "";
    "queued.max.request.bytes" long "-1" any medium read_only done
        "";
    "num.network.threads" int "3" (at_least 1) high cluster_wide done
        "";
    "fetch.purgatory.purge.interval.requests" int "1000" any medium read_only done
        "";
    "security.inter.broker.protocol" string "PLAINTEXT" (one_of "PLAINTEXT" "SSL" "SASL_PLAINTEXT" "SASL_SSL") medium read_only done
        "";
    "inter.broker.listener.name" string null any medium read_only done
        "";
    "principal.builder.class" class "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder" any medium per_broker done
        "";
}
