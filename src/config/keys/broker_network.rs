//! Listeners, connections, requests, and who may ask.

broker_keys! {
    "num.io.threads" int "8" (at_least 1) high cluster_wide (ignored THREADS)
        "Threads that work on requests.";
    "background.threads" int "10" (at_least 1) high cluster_wide (ignored THREADS)
        "Threads for work in the background.";
    "request.timeout.ms" int "30000" any high read_only (ignored NO_QUORUM)
        "How long a request that waits for the controller may take.";
    "socket.connection.setup.timeout.ms" long "10000" any medium read_only (ignored NO_QUORUM)
        "How long a connection to another broker may take to open.";
    "socket.connection.setup.timeout.max.ms" long "30000" any medium read_only (ignored NO_QUORUM)
        "The same after repeated failures.";
    "authorizer.class.name" string "" non_null low read_only (refused NO_AUTHORIZER)
        "Class that decides who may do what.";
    "early.start.listeners" list null null_or_elements high read_only (ignored NO_AUTHORIZER)
        "Listeners that open before the authorizer is ready.";
    "max.incremental.fetch.session.cache.slots" int "1000" (at_least 0) medium read_only done
        "Fetch sessions (KIP-227) that are remembered.";
    "fetch.max.bytes" int "57671680" (at_least 1024) medium read_only done
        "Most bytes in one answer to a fetch, whatever the client asks for.";
    "max.request.partition.size.limit" int "2000" (at_least 1) medium read_only done
        "Most partitions in one answer to DescribeTopicPartitions.";
    "listeners" list "PLAINTEXT://:9092" (some_elements) high per_broker done
        "Where to listen, as NAME://host:port. No host means every interface; localhost means both loopback addresses; port 0 lets the system choose.";
    "advertised.listeners" list null null_or_some_elements high read_only done
        "What clients are told to connect to. By default the same as listeners.";
    "listener.security.protocol.map" string "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT" any low per_broker done
        "The protocol behind each listener name. Only PLAINTEXT can be served yet.";
    "socket.send.buffer.bytes" int "102400" any high read_only done
        "Size of the socket's send buffer; -1 leaves it to the system, which lets it grow: for consumers far away, whose connections hold more than this on their way.";
    "socket.receive.buffer.bytes" int "102400" any high read_only (ignored RECEIVE_BUFFERS)
        "Size of the socket's receive buffer; -1 leaves it to the system.";
    "socket.request.max.bytes" int "104857600" (at_least 1) high read_only done
        "Largest request; a longer one closes its connection.";
    "socket.listen.backlog.size" int "50" (at_least 1) medium read_only (ignored SYSTEM_SOCKETS)
        "Connections that may wait to be accepted.";
    "max.connections.per.ip" int "2147483647" (at_least 0) medium cluster_wide done
        "Connections from one address.";
    "max.connections.per.ip.overrides" string "" any medium cluster_wide done
        "Other limits for certain addresses, as host:count.";
    "max.connections" int "2147483647" (at_least 0) medium cluster_wide done
        "Connections in all.";
    "max.connection.creation.rate" int "2147483647" (at_least 0) medium cluster_wide (ignored NO_CONNECTION_RATES)
        "New connections a second.";
    "connections.max.idle.ms" long "600000" any medium read_only done
        "A connection that is silent for so long is closed; negative means never.";
    "connection.failed.authentication.delay.ms" int "100" (at_least 0) low read_only (ignored NO_SASL)
        "Delay before a connection that failed to authenticate is closed.";
    "queued.max.requests" int "500" (at_least 1) high read_only (ignored BYTES_NOT_COUNTS)
        "Requests that may have been read and not begun; above it, nothing more is read.";
    "queued.max.request.bytes" long "-1" any medium read_only done
        "Bytes of requests that may have been read and not answered; above it, nothing more is read. -1 leaves the limit to the memory budget.";
    "num.network.threads" int "3" (at_least 1) high cluster_wide (ignored THREADS)
        "Threads that read requests and send answers.";
    "fetch.purgatory.purge.interval.requests" int "1000" any medium read_only (ignored PURGATORY)
        "Fetches after which finished waiters are purged.";
    "security.inter.broker.protocol" string "PLAINTEXT" (one_of "PLAINTEXT" "SSL" "SASL_PLAINTEXT" "SASL_SSL") medium read_only (refused NO_TLS)
        "Protocol between brokers where no listener is named for it.";
    "inter.broker.listener.name" string null any medium read_only done
        "The listener that brokers use among themselves.";
    "principal.builder.class" class "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder" any medium per_broker (refused JVM)
        "Class that turns a connection into a user.";
}
