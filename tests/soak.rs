//! Everything at once, for a while: topics come and go, members join, leave and crash, clients are killed, settings change,
//! connections misbehave. Producers and consumers check what they get, and at the end nothing has grown.
//!
//! `RINGMAIN_SOAK_SECONDS` says for how long; the default is short.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

#[allow(dead_code, reason = "shared with the other tests of the wire")]
#[path = "wire/batch.rs"]
mod batch;
#[allow(dead_code, reason = "shared with the other tests of the wire")]
#[path = "wire/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the other tests of the wire")]
#[path = "wire/common.rs"]
mod common;

#[path = "soak/churn.rs"]
mod churn;
#[path = "soak/crowd.rs"]
mod crowd;
#[path = "soak/group.rs"]
mod group;
#[path = "soak/watch.rs"]
mod watch;

use std::time::Duration;

use support::broker::Broker;
use support::driver::spawn;
use support::port;

/// When the work is over.
#[derive(Clone, Copy)]
pub struct Until(std::time::Instant);

impl Until {
    fn after(seconds: u64) -> Self {
        Until(support::clock::now() + Duration::from_secs(seconds))
    }

    /// Whether there is time left.
    pub fn goes_on(self) -> bool {
        support::clock::now() < self.0
    }
}

#[test]
fn nothing_grows_and_nothing_is_lost() {
    let seconds = std::env::var("RINGMAIN_SOAK_SECONDS")
        .map_or(30, |text| text.parse().expect("a number of seconds"));
    let http = port::free();
    let listener = format!("127.0.0.1:{http}");
    let settings = [
        ("ringmain.http.listener", listener.as_str()),
        ("ringmain.shards", "2"),
        ("offsets.topic.num.partitions", "8"),
        ("connections.max.idle.ms", "5000"),
        ("queued.max.request.bytes", "33554432"),
        ("socket.request.max.bytes", "33554432"),
    ];
    let mut broker = Broker::start("soak", &settings);
    let (port, bootstrap) = (broker.port, broker.bootstrap());
    let until = Until::after(seconds);
    let started = support::clock::now();
    let watch = spawn(move || watch::run(http, until, started));
    let churn: Vec<_> = (0..2)
        .map(|number| spawn(move || churn::run(port, number, until)))
        .collect();
    let crowd = spawn(move || crowd::run(port, until));
    let settings = spawn(move || churn::change_settings(port, until));
    let grouped = group::run(&bootstrap, until);
    let made: Vec<_> = churn
        .into_iter()
        .map(|it| it.join().expect("churn"))
        .collect();
    let hostile = crowd.join().expect("the crowd");
    let changes = settings.join().expect("the settings");
    println!(
        "{grouped}; topics made and deleted, records read back: {made:?}; hostile connections: {hostile}; changes of settings: {changes}"
    );
    let samples = watch.join().expect("the watch");
    watch::judge(http, &samples);
    assert_eq!(broker.stop().code(), Some(0));
    let log = broker.log();
    let errors: Vec<&str> = log
        .lines()
        .filter(|line| line.contains(" ERROR "))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}
