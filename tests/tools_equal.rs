//! Our command-line tools beside Apache's: the same arguments, the same broker, the same output. `tools_equal/README.md` lists
//! what may differ.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]
#![allow(clippy::too_many_lines, reason = "a test may be a long table")]

mod support;

#[path = "tools_equal/both.rs"]
mod both;
#[path = "tools_equal/help.rs"]
mod help;
#[path = "tools_equal/quorum.rs"]
mod quorum;
#[path = "tools_equal/storage.rs"]
mod storage;

use std::fs;

use both::{Both, Rule::*};
use support::broker::fresh_directory;
use support::clock;
use support::commands::Commands;

/// Everything runs against one broker, in one process of Apache's tools, since each start costs seconds.
#[test]
fn the_tools_say_what_apaches_say() {
    let start = clock::now();
    let mut both = Both::start("tools-equal");
    cluster(&mut both);
    topics(&mut both);
    offsets(&mut both);
    configs(&mut both);
    groups(&mut both);
    resets(&mut both);
    for difference in help::compare(&mut both) {
        both.differs(difference);
    }
    let took = clock::now().duration_since(start);
    println!("{} commands compared in {took:.1?}", both.compared);
    both.finish();
}

/// What is not asked of a broker of ours.
#[test]
fn directories_and_quorums_of_apaches_are_cared_for_as_by_its_own_tools() {
    let directory = fresh_directory("tools-storage");
    let mut apache = Commands::start(&directory);
    quorum::controllers_come_and_go(&mut apache);
    let (compared, differences) = storage::compare(&mut apache);
    println!("{compared} commands compared");
    assert!(
        differences.is_empty(),
        "{} of {compared} commands differ:\n\n{}",
        differences.len(),
        differences.join("\n\n")
    );
}

fn cluster(both: &mut Both) {
    both.each(&[
        (Same, "cluster cluster-id --bootstrap-server @B"),
        (Same, "cluster cluster-id --bootstrap-controller @C"),
        (Same, "cluster list-endpoints -b @B"),
        (Same, "cluster list-endpoints -C @C"),
        (Same, "cluster list-endpoints -b @B --include-fenced-brokers"),
        (Same, "cluster list-endpoints -C @C --include-fenced-brokers"),
        (Same, "cluster unregister --id 77 --bootstrap-server @B"),
        (Same, "cluster cluster-id -b @B --config @brief"),
        (Same, "cluster cluster-id -b @B --config @brief --command-config @brief"),
        (Same, "cluster unregister-controller --id 77 -b @B"),
        (Same, "cluster unregister-controller --id 77 -C @C"),
        (Same, "cluster api-versions -b @B"),
        (Same, "cluster api-versions -C @C"),
        (Same, "broker-api-versions --bootstrap-server @B"),
        (Same, "broker-api-versions"),
        (Same, "features --bootstrap-server @B describe"),
        (Same, "features --bootstrap-controller @C describe"),
        (Same, "features --bootstrap-server @B describe --node-id 1"),
        (Same, "features --bootstrap-server @B describe --node-id -1"),
        (Same, "features describe"),
        (Same, "features version-mapping"),
        (Same, "features version-mapping --release-version 3.9"),
        (Same, "features version-mapping --release-version 4.1-IV1"),
        (Same, "features version-mapping --release-version 9.9"),
        (Same, "features feature-dependencies --feature metadata.version=30 --feature group.version=1"),
        (Same, "features feature-dependencies --feature eligible.leader.replicas.version=1"),
        (Same, "features feature-dependencies --feature nope.version=1"),
        (Same, "features --bootstrap-server @B upgrade --feature metadata.version=33 --dry-run"),
        (Same, "features --bootstrap-server @B downgrade --feature metadata.version=1 --dry-run"),
        (Same, "features --bootstrap-server @B upgrade"),
        (Same, "features --bootstrap-server @B upgrade --feature metadata.version"),
        (Same, "features --bootstrap-server @B disable --feature nope.version"),
        (Same, "metadata-quorum --bootstrap-server @B describe --status"),
        (Same, "metadata-quorum --bootstrap-controller @C describe --status"),
        (Moments, "metadata-quorum --bootstrap-server @B describe --replication"),
        (Moments, "metadata-quorum --bootstrap-controller @C describe --replication --human-readable"),
        (Same, "metadata-quorum --bootstrap-server @B describe"),
        (Same, "metadata-quorum --bootstrap-server @B describe --status --replication"),
        (Same, "metadata-quorum --bootstrap-server @B remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAQ --dry-run"),
        (Same, "metadata-quorum --bootstrap-server @B remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAQ --dry-run --unregister"),
        (Same, "metadata-quorum --bootstrap-server @B remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAQ"),
        (Same, "metadata-quorum --bootstrap-controller @C remove-controller -i 7 -d AAAAAAAAAAAAAAAAAAAAAQ"),
        (Same, "metadata-quorum --bootstrap-server @B remove-controller -i -7 -d AAAAAAAAAAAAAAAAAAAAAQ"),
        (Same, "metadata-quorum --bootstrap-server @B remove-controller -i 7 -d nonsense"),
        (Same, "metadata-quorum --bootstrap-server @B --command-config @server.properties add-controller --dry-run"),
        (Same, "metadata-quorum --bootstrap-server @B --command-config @server.properties add-controller"),
        (Same, "metadata-quorum --bootstrap-controller @C --command-config @server.properties add-controller"),
        (Same, "metadata-quorum --bootstrap-server @B add-controller"),
        (Same, "metadata-quorum --bootstrap-server @B --command-config @brief add-controller"),
    ]);
    both.complains(
        "cluster cluster-id -b 127.0.0.1:1 --command-config @brief",
        "127.0.0.1:1",
    );
    both.complains(
        "topics --list --bootstrap-server @B --nonsense",
        "--nonsense",
    );
    both.complains("topics --list", "--bootstrap-server");
}

fn topics(both: &mut Both) {
    let id = {
        both.each(&[(Same, "topics --bootstrap-server @B --create --topic % --partitions 3 --config retention.ms=100000")]);
        let described = both.ours("topics --bootstrap-server @B --describe --topic left");
        let id = described
            .out
            .split("TopicId: ")
            .nth(1)
            .and_then(|rest| rest.split('\t').next());
        id.expect("an id").to_owned()
    };
    both.each(&[
        (Same, "topics --bootstrap-server @B --create --topic %"),
        (Same, "topics --bootstrap-server @B --create --topic % --if-not-exists"),
        (Same, "topics --bootstrap-server @B --create --topic dotted.% --config cleanup.policy=compact --config min.insync.replicas=1"),
        (Same, "topics --bootstrap-server @B --create --topic assigned% --replica-assignment 1,1"),
        (Same, "topics --bootstrap-server @B --create --topic x% --replica-assignment 1:1"),
        (Same, "topics --bootstrap-server @B --create --topic x% --config nope=1"),
        (Same, "topics --bootstrap-server @B --create --topic x% --config nope"),
        (Same, "topics --bootstrap-server @B --create --topic x% --config retention.ms=soon"),
        (Same, "topics --bootstrap-server @B --create --topic x% --replication-factor 3"),
        (Same, "topics --bootstrap-server @B --create --topic x% --replication-factor 0"),
        (Same, "topics --bootstrap-server @B --create --topic x% --partitions 0"),
        (Same, "topics --bootstrap-server @B --create --topic b@d%"),
        (Same, "topics --bootstrap-server @B --create"),
        (Same, "topics --bootstrap-server @B --list"),
        (Same, "topics --bootstrap-server @B --list --topic left,dotted.*"),
        (Same, "topics --bootstrap-server @B --list --topic nope"),
        (Same, "topics --bootstrap-server @B --list --exclude-internal"),
        (Same, "topics --bootstrap-server @B --list --if-exists"),
        (Same, "topics --bootstrap-server @B --list --create"),
        (Same, "topics --bootstrap-server @B"),
        (Rows, "topics --bootstrap-server @B --describe"),
        (Rows, "topics --bootstrap-server @B --describe --exclude-internal"),
        (Rows, "topics --bootstrap-server @B --describe --topic left"),
        (Rows, "topics --bootstrap-server @B --describe --topic left --partition-size-limit-per-response 1"),
        (Rows, "topics --bootstrap-server @B --describe --topics-with-overrides"),
        (Same, "topics --bootstrap-server @B --describe --under-replicated-partitions"),
        (Same, "topics --bootstrap-server @B --describe --unavailable-partitions"),
        (Same, "topics --bootstrap-server @B --describe --under-min-isr-partitions"),
        (Rows, "topics --bootstrap-server @B --describe --at-min-isr-partitions"),
        (Same, "topics --bootstrap-server @B --describe --at-min-isr-partitions --topics-with-overrides"),
        (Same, "topics --bootstrap-server @B --describe --topic nope"),
        (Same, "topics --bootstrap-server @B --describe --topic nope --if-exists"),
        (Same, "topics --bootstrap-server @B --describe --if-exists"),
        (Same, "topics --bootstrap-server @B --describe --topic-id AAAAAAAAAAAAAAAAAAAAAg"),
        (Rows, &format!("topics --bootstrap-server @B --describe --topic-id {id}")),
        (Rows, &format!("topics --bootstrap-server @B --describe --topic-id {id} --topic left --if-exists")),
        (Same, "topics --bootstrap-server @B --alter --topic % --partitions 5"),
        (Same, "topics --bootstrap-server @B --alter --topic % --partitions 4"),
        (Same, "topics --bootstrap-server @B --alter --topic assigned% --partitions 3 --replica-assignment 1,1,1"),
        (Same, "topics --bootstrap-server @B --alter --topic nope --partitions 4"),
        (Same, "topics --bootstrap-server @B --alter --topic nope --partitions 4 --if-exists"),
        (Same, "topics --bootstrap-server @B --alter --topic %"),
        (Same, "topics --bootstrap-server @B --alter --topic % --config retention.ms=1 --partitions 9"),
        (Same, "topics --bootstrap-server @B --alter --topic % --delete-config retention.ms --partitions 9"),
        (Rows, "topics --bootstrap-server @B --describe --topic left|assignedleft"),
        (Same, "topics --bootstrap-server @B --delete --topic dotted.%"),
        (Same, "topics --bootstrap-server @B --delete --topic nope"),
        (Same, "topics --bootstrap-server @B --delete --topic nope --if-exists"),
        (Same, "topics --bootstrap-server @B --delete"),
        (Same, "topics --bootstrap-server @B --list"),
    ]);
}

fn offsets(both: &mut Both) {
    both.produce("left", 0, 5);
    both.produce("left", 1, 3);
    let wanted = r#"{"partitions": [{"topic": "left", "partition": 0, "offset": 2},
                     {"topic": "left", "partition": 1, "offset": 70}], "version": 1}"#;
    fs::write(both.file("wanted.json"), wanted).expect("a file");
    let twice = r#"{"partitions": [{"topic": "left", "partition": 0, "offset": 2},
                    {"topic": "left", "partition": 0, "offset": 3}]}"#;
    fs::write(both.file("twice.json"), twice).expect("a file");
    both.each(&[
        (
            Rows,
            "delete-records --bootstrap-server @B --offset-json-file @wanted.json",
        ),
        (
            Same,
            "delete-records --bootstrap-server @B --offset-json-file @twice.json",
        ),
        (
            Same,
            "delete-records --bootstrap-server @B --offset-json-file @none.json",
        ),
        (Same, "delete-records --bootstrap-server @B"),
        (Same, "get-offsets --bootstrap-server @B"),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --time earliest",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --time -3",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --time 1700000000003",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --time earliest-local",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --time latest-tiered",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --time soon",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic l.* --partitions 0,1",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic left --partitions x",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic-partitions left:0,left:2-4,rite,:1",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic-partitions left:-2",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic-partitions left:x",
        ),
        (
            Same,
            "get-offsets --bootstrap-server @B --topic-partitions left --topic left",
        ),
        (Same, "get-offsets --bootstrap-server @B --topic nope"),
        (
            Same,
            "get-offsets --bootstrap-server @B --exclude-internal-topics",
        ),
        (
            Same,
            "log-dirs --bootstrap-server @B --describe --topic-list nope",
        ),
        (Json, "log-dirs --bootstrap-server @B --describe"),
        (
            Json,
            "log-dirs --bootstrap-server @B --describe --topic-list left --broker-list 1",
        ),
        (
            Same,
            "log-dirs --bootstrap-server @B --describe --broker-list 1,9",
        ),
        (Same, "log-dirs --bootstrap-server @B"),
    ]);
}

fn configs(both: &mut Both) {
    fs::write(
        both.file("added.properties"),
        "retention.ms=5000\nsegment.bytes=2000000\n",
    )
    .expect("a file");
    both.each(&[
        (Same, "configs --bootstrap-server @B --alter --topic % --add-config cleanup.policy=[compact,delete],retention.ms=9000"),
        (Same, "configs --bootstrap-server @B --alter --entity-type topics --entity-name % --delete-config retention.ms,flush.ms"),
        (Same, "configs --bootstrap-server @B --alter --topic % --add-config-file @added.properties"),
        (Same, "configs --bootstrap-server @B --alter --topic % --add-config nope=1"),
        (Same, "configs --bootstrap-server @B --alter --topic % --add-config nope"),
        (Same, "configs --bootstrap-server @B --alter --topic nope --add-config retention.ms=1"),
        (Same, "configs --bootstrap-server @B --alter --topic %"),
        (Same, "configs --bootstrap-server @B --alter --entity-type topics --add-config retention.ms=1"),
        (Same, "configs --bootstrap-server @B --describe --topic left"),
        (Same, "configs --bootstrap-server @B --describe --topic left --all"),
        (Same, "configs --bootstrap-server @B --describe --topic nope"),
        (Rows, "configs --bootstrap-server @B --describe --entity-type topics"),
        (Same, "configs --bootstrap-server @B --alter --broker 1 --add-config log.retention.ms=77000"),
        (Same, "configs --bootstrap-server @B --alter --broker-defaults --add-config log.retention.ms=78000"),
        (Same, "configs --bootstrap-server @B --alter --broker 1 --add-config node.id=2"),
        (Same, "configs --bootstrap-server @B --describe --broker 1"),
        (Same, "configs --bootstrap-server @B --describe --broker 1 --all"),
        (Same, "configs --bootstrap-server @B --describe --broker 9"),
        (Same, "configs --bootstrap-server @B --describe --broker one"),
        (Same, "configs --bootstrap-server @B --describe --broker-defaults"),
        (Same, "configs --bootstrap-server @B --describe --entity-type brokers --entity-default"),
        (Same, "configs --bootstrap-server @B --describe --entity-type brokers"),
        (Same, "configs --bootstrap-controller @C --describe --broker 1"),
        (Same, "configs --bootstrap-server @B --alter --broker 1 --delete-config log.retention.ms"),
        (Same, "configs --bootstrap-server @B --describe --broker-logger 1"),
        (Same, "configs --bootstrap-server @B --alter --broker-logger 1 --add-config no.such.logger=DEBUG"),
        (Same, "configs --bootstrap-server @B --alter --broker-logger 1 --add-config broker.network=DEBUG"),
        (Same, "configs --bootstrap-server @B --describe --broker-logger 1"),
        (Same, "configs --bootstrap-server @B --alter --broker-logger 1 --delete-config broker.network"),
        (Same, "configs --bootstrap-server @B --describe --entity-type broker-loggers"),
        (Same, "configs --bootstrap-server @B --describe --entity-type client-metrics"),
        (Same, "configs --bootstrap-server @B --describe --client-metrics nope"),
        (Same, "configs --bootstrap-server @B --describe --group nope"),
        (Same, "configs --bootstrap-server @B --describe --entity-type nonsense"),
        (Same, "configs --bootstrap-server @B --describe"),
        (Same, "configs --bootstrap-server @B --topic left"),
        (Same, "configs --describe --topic left"),
        (Same, "configs --bootstrap-server @B --describe --topic left --broker 1"),
        (Same, "configs --bootstrap-server @B --alter --topic % --add-config a=1 --add-config-file @added.properties"),
    ]);
}

fn groups(both: &mut Both) {
    both.hold("held", "left");
    both.each(&[
        (Rows, "groups --bootstrap-server @B --list"),
        (Rows, "groups --bootstrap-server @B --list --consumer"),
        (Rows, "groups --bootstrap-server @B --list --share"),
        (Rows, "groups --bootstrap-server @B --list --streams"),
        (Rows, "groups --bootstrap-server @B --list --group-type classic --protocol consumer"),
        (Same, "groups --bootstrap-server @B --list --group-type nonsense"),
        (Same, "groups --bootstrap-server @B"),
        (Rows, "consumer-groups --bootstrap-server @B --list"),
        (Rows, "consumer-groups --bootstrap-server @B --list --state"),
        (Rows, "consumer-groups --bootstrap-server @B --list --type"),
        (Rows, "consumer-groups --bootstrap-server @B --list --type classic --state stable,empty"),
        (Same, "consumer-groups --bootstrap-server @B --list --state nonsense"),
        (Same, "consumer-groups --bootstrap-server @B --list --type share"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held --offsets --verbose"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held --members"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held --members --verbose"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held --state"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held --state --verbose"),
        (Same, "consumer-groups --bootstrap-server @B --describe --all-groups"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group nope"),
        (Same, "consumer-groups --bootstrap-server @B --describe"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group held --members --offsets"),
        (Same, "consumer-groups --bootstrap-server @B --delete --group held"),
        (Same, "consumer-groups --bootstrap-server @B --delete --group nope"),
        (Same, "consumer-groups --bootstrap-server @B --delete --group held --topic left"),
        (Rows, "consumer-groups --bootstrap-server @B --reset-offsets --group held --topic left --to-earliest --execute"),
        (Same, "consumer-groups --bootstrap-server @B --delete-offsets --group held --topic left"),
        (Same, "consumer-groups --bootstrap-server @B --delete-offsets --group nope --topic left"),
        (Same, "consumer-groups --bootstrap-server @B"),
        (Same, "consumer-groups --list"),
        (Same, "consumer-groups --validate-regex a.*"),
    ]);
    both.release();
}

fn resets(both: &mut Both) {
    let reset = "consumer-groups --bootstrap-server @B --reset-offsets --group g%";
    for (rule, rest) in [
        (Rows, "--topic left --to-earliest --execute"),
        (Rows, "--topic left:0,1 --to-latest --dry-run"),
        (Rows, "--topic left:0 --to-offset 4 --execute"),
        (Rows, "--topic left:0 --to-offset 400 --dry-run"),
        (Rows, "--topic left:0 --to-offset 0 --dry-run"),
        (Rows, "--topic left:0 --shift-by -1 --execute"),
        (Same, "--topic rite:0 --shift-by 1 --dry-run"),
        (Rows, "--all-topics --to-current --dry-run"),
        (Rows, "--topic left --to-current --dry-run"),
        (
            Rows,
            "--topic left:0,1 --to-datetime 2023-11-14T22:13:20.003 --dry-run",
        ),
        (
            Rows,
            "--topic left:0 --to-datetime 2023-11-14T23:13:20.003+01:00 --dry-run",
        ),
        (
            Rows,
            "--topic left --to-datetime 2030-01-01T00:00:00.000 --dry-run",
        ),
        (Rows, "--topic left:0 --by-duration P36500D --dry-run"),
        (
            Rows,
            "--topic left:0,1,2 --by-duration P15000DT2H30M1.5S --dry-run",
        ),
        (Rows, "--topic left --to-earliest --export --dry-run"),
        (Rows, "--from-file @plan.csv --execute"),
        (Same, "--topic nope --to-earliest"),
        (Same, "--topic left:77 --to-earliest"),
        (Same, "--topic left:x --to-earliest"),
        (Same, "--topic left"),
        (Same, "--to-earliest"),
        (Same, "--topic left --to-earliest --to-latest"),
        (Same, "--topic left --to-earliest --dry-run --execute"),
    ] {
        fs::write(both.file("plan.csv"), "left,0,3\nleft,1,1\n").expect("a file");
        both.each(&[(rule, &format!("{reset} {rest}"))]);
    }
    both.each(&[
        (Same, "consumer-groups --bootstrap-server @B --describe --group g%"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group gleft --group grite --members"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group g% --state"),
        (Rows, "consumer-groups --bootstrap-server @B --reset-offsets --group gleft --group grite --topic left --to-earliest --export"),
        (Rows, "consumer-groups --bootstrap-server @B --delete-offsets --group g% --topic left:0"),
        (Rows, "consumer-groups --bootstrap-server @B --delete-offsets --group g% --topic nope"),
        (Same, "consumer-groups --bootstrap-server @B --delete --group g%"),
        (Same, "consumer-groups --bootstrap-server @B --describe --group g%"),
        (Rows, "consumer-groups --bootstrap-server @B --list"),
    ]);
}
