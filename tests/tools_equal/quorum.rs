//! Controllers that join and leave a quorum, which is Apache's: ours has one controller only.
use std::fs;
use std::path::Path;

use crate::support::apache;
use crate::support::broker::{Broker, Program};
use crate::support::clock;
use crate::support::commands::{Commands, Ended, ringmain};

const CLUSTER_ID: &str = "MkU3OEVBNTcwNTJENDM2Qg";
const TOOL: &str = "org.apache.kafka.tools.MetadataQuorumCommand";

/// A node of a dynamic quorum, formatted and running. It is reached at `port`: the first is the broker too.
fn node(name: &str, id: i32, bootstrap: Option<u16>) -> Broker {
    let mut broker = Broker::unformatted(name);
    broker.program = Program::Apache;
    let (port, controller) = match bootstrap {
        None => (broker.port, broker.controller_port),
        Some(_) => (broker.controller_port, broker.port),
    };
    let (roles, listeners, flag) = match bootstrap {
        None => (
            "broker,controller",
            format!("PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"),
            "--standalone",
        ),
        Some(_) => (
            "controller",
            format!("CONTROLLER://127.0.0.1:{controller}"),
            "-N",
        ),
    };
    let text = format!(
        "process.roles={roles}\nnode.id={id}\nlisteners={listeners}\ncontroller.listener.names=CONTROLLER\n\
         controller.quorum.bootstrap.servers=127.0.0.1:{}\nlog.dirs={}\n",
        bootstrap.unwrap_or(controller),
        broker.data().display(),
    );
    fs::write(broker.properties(), text).expect("a file");
    let mut format = apache::storage();
    format.args(["format", flag, "-t", CLUSTER_ID, "-c"]);
    let done = format.arg(broker.properties()).output().expect("Java");
    assert!(done.status.success(), "{done:?}");
    broker.restart();
    broker
}

/// Both tools, asked the same one after the other.
struct Tools<'a> {
    apache: &'a mut Commands,
    controller: String,
    configuration: String,
}

impl Tools<'_> {
    fn words<'a>(&'a self, rest: &[&'a str]) -> Vec<&'a str> {
        let mut words = vec!["--bootstrap-controller", self.controller.as_str()];
        words.extend(["--command-config", self.configuration.as_str()]);
        words.extend(rest);
        words
    }

    fn ours(&self, rest: &[&str]) -> Ended {
        ringmain(&[&["metadata-quorum"], &self.words(rest)[..]].concat())
    }

    fn apaches(&mut self, rest: &[&str]) -> Ended {
        let words: Vec<String> = self
            .words(rest)
            .iter()
            .map(|&word| word.to_owned())
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.apache.run(TOOL, &words)
    }

    /// What both say to the same question, which must be the same.
    fn both(&mut self, rest: &[&str]) -> (i32, String) {
        let (theirs, ours) = (self.apaches(rest), self.ours(rest));
        assert_eq!(
            (theirs.code, &theirs.out),
            (ours.code, &ours.out),
            "{rest:?}: {} {}",
            theirs.err,
            ours.err
        );
        (ours.code, ours.out)
    }

    /// The new controller has been heard of by the leader, as a voter or as none.
    fn wait_for(&self, voters: bool) {
        clock::wait_for("the quorum to be as told", || {
            let status = self.ours(&["describe", "--status"]).out;
            let line = |head: &str| {
                status
                    .lines()
                    .find(|line| line.starts_with(head))
                    .unwrap_or_default()
                    .to_owned()
            };
            let seen = match voters {
                true => line("CurrentVoters"),
                false => line("CurrentObservers"),
            };
            seen.contains("\"id\": 2").then_some(())
        });
    }
}

fn directory_id(data: &Path) -> String {
    let meta = fs::read_to_string(data.join("meta.properties")).expect("it is formatted");
    let line = meta
        .lines()
        .find_map(|line| line.strip_prefix("directory.id="));
    line.expect("an id").to_owned()
}

/// A second controller comes and goes by either tool, and each sees what the other did.
pub fn controllers_come_and_go(apache: &mut Commands) {
    let mut first = node("quorum-first", 1, None);
    let mut second = node("quorum-second", 2, Some(first.controller_port));
    let id = directory_id(&second.data());
    let mut tools = Tools {
        apache,
        controller: format!("127.0.0.1:{}", first.controller_port),
        configuration: second.properties().display().to_string(),
    };
    tools.wait_for(false);
    let known = format!("with directory id {id}");
    let endpoints = format!(
        "{known} and endpoints: CONTROLLER://127.0.0.1:{}\n",
        second.port
    );
    let remove = ["remove-controller", "-i", "2", "-d", id.as_str()];

    let planned = tools.both(&["add-controller", "--dry-run"]);
    assert_eq!(
        planned,
        (0, format!("DRY RUN of adding controller 2 {endpoints}"))
    );
    succeeded(
        &tools.ours(&["add-controller"]),
        &format!("Added controller 2 {endpoints}"),
    );
    tools.wait_for(true);
    // It is one already.
    assert_eq!(tools.both(&["add-controller"]), (1, String::new()));

    let planned = tools.both(&[&remove[..], &["--dry-run", "--unregister"]].concat());
    let text = format!(
        "DRY RUN of removing KRaft controller 2 {known}\nDRY RUN of unregistering KRaft controller 2\n"
    );
    assert_eq!(planned, (0, text));
    succeeded(
        &tools.ours(&remove),
        &format!("Removed KRaft controller 2 {known}\n"),
    );
    tools.wait_for(false);
    // It is none any more.
    assert_eq!(tools.both(&remove), (1, String::new()));

    // The same by Apache's tool, whose words are therefore ours.
    succeeded(
        &tools.apaches(&["add-controller"]),
        &format!("Added controller 2 {endpoints}"),
    );
    tools.wait_for(true);
    succeeded(
        &tools.apaches(&remove),
        &format!("Removed KRaft controller 2 {known}\n"),
    );
    second.stop();
    first.stop();
}

/// It ended well, with these words.
fn succeeded(ended: &Ended, words: &str) {
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (0, words),
        "{}",
        ended.err
    );
}
