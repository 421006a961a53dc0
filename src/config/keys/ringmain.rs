//! Our own keys. Kafka has no word for these.

broker_keys! {
    "ringmain.shards" int "0" (between 0 and 1024) medium read_only done
        "Number of shards, the single-threaded executors that own the partitions; 0 makes one for each core that the process may use.";
    "ringmain.pin" boolean "true" any low read_only done
        "Keep each shard on its own core. Turn it off where other work shares the cores.";
    "ringmain.io.backend" string "auto" (one_of "auto" "ring" "epoll") medium read_only done
        "How files and sockets are driven: ring (io_uring), epoll with a thread pool for files, or auto, which takes ring where the kernel allows it.";
    "ringmain.journal.bytes" int "33554432" (at_least 0) medium read_only done
        "Room for the journal of each core on each log directory, where small appends of all partitions are written together before they reach their segments. It takes at most a sixteenth of what is free there, and all of one directory at most a thirty-second of the memory; 0 writes everything to its segment at once.";
    "ringmain.http.listener" string "" any low read_only done
        "Where metrics, health and flame graphs are told over HTTP, as host:port; no host means every interface. Empty: nowhere.";
    "ringmain.metrics.partitions" boolean "false" any low read_only done
        "Tell size, offsets and traffic of every partition among the metrics. With many partitions a scrape becomes large.";
    "ringmain.slow.request.ms" int "1000" (at_least 0) low read_only done
        "A request that takes longer, without what the client asked to wait for, is told in the log, with where its time went; 0 tells none.";
}
