//! Every method of Java's Admin client, as UIs and tools call it: what this broker answers, beside Apache Kafka.
//!
//! docs/admin-client.md has the answers of both. `UPDATE_DOCS=1 cargo test --test admin_calls` asks both anew and writes it.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test says how far it came"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use support::broker::{Broker, Program};
use support::tools::Tools;

const PAGE: &str = "docs/admin-client.md";
const HEAD: &str = "\
# Java's Admin client, method by method

What every method of the Admin client of Apache Kafka 4.4 answers on a fresh Apache Kafka 4.4 and on a fresh broker of this
project, asked in this order. Ids, ports, times and addresses are replaced by words. \"The same\" means the same text. Where it
differs, the feature is not built yet (transactions, share and streams groups, quotas, credentials, tokens, settings of groups
and of client metrics, moves between directories, several controllers), or the controller here checks and tells what Apache's
leaves to its brokers.

Written by `UPDATE_DOCS=1 cargo test --test admin_calls`; without the variable the test asks this broker and compares.
";
/// What the client is told of the cluster, and the section about it.
const KINDS: [(&str, &str); 2] = [
    ("servers", "## By `bootstrap.servers`"),
    ("controllers", "## By `bootstrap.controllers`"),
];
const SAME: &str = "the same";

/// Method and what it is called with, and the answer; in the order of the calls.
type Answers = Vec<((String, String), String)>;

fn ask(tools: &mut Tools, broker: &Broker, kind: &str) -> Answers {
    let port = match kind {
        "servers" => broker.port,
        _ => broker.controller_port,
    };
    let lines = tools.ask(&["admin-calls", kind, &format!("127.0.0.1:{port}")]);
    let rows = lines.iter().filter_map(|line| {
        let mut fields = line.split('\t');
        let (method, with, answer) = (fields.next()?, fields.next()?, fields.next()?);
        Some(((method.to_owned(), with.to_owned()), answer.to_owned()))
    });
    rows.collect()
}

fn asked(program: Program, name: &str) -> Vec<Answers> {
    let mut broker = Broker::prepare_as(program, name, &[], &[]);
    broker.restart();
    let mut tools = Tools::start(&broker.directory);
    let answers = KINDS.iter().map(|(kind, _)| ask(&mut tools, &broker, kind));
    answers.collect()
}

fn page(apaches: &[Answers], ours: &[Answers]) -> String {
    let mut page = HEAD.to_owned();
    for (((_, title), apaches), ours) in KINDS.iter().zip(apaches).zip(ours) {
        let ours: BTreeMap<_, _> = ours.iter().cloned().collect();
        page += &format!(
            "\n{title}\n\n| method | with | Apache Kafka 4.4 | here |\n|---|---|---|---|\n"
        );
        for (call, theirs) in apaches {
            let our = ours.get(call).expect("both are asked the same");
            let our = if our == theirs { SAME } else { our };
            page += &format!("| {} | {} | {theirs} | {our} |\n", call.0, call.1);
        }
    }
    page
}

/// What the page says that this broker answers.
fn promised(page: &str) -> Vec<Answers> {
    let section = |title: &str| -> Answers {
        let (_, text) = page.split_once(title).expect("the section");
        let text = text.split("\n## ").next().unwrap_or_default();
        let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
        rows.map(|line| {
            let line = line.trim_start_matches("| ").trim_end_matches(" |");
            let fields: Vec<&str> = line.split(" | ").collect();
            let [method, with, theirs, our] = fields[..] else {
                panic!("{line}");
            };
            let answer = if our == SAME { theirs } else { our };
            ((method.to_owned(), with.to_owned()), answer.to_owned())
        })
        .collect()
    };
    KINDS.iter().map(|(_, title)| section(title)).collect()
}

#[test]
fn every_method_answers_what_the_page_says() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let ours = asked(Program::Ringmain, "admin-calls");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let apaches = asked(Program::Apache, "admin-calls-apache");
        fs::write(&file, page(&apaches, &ours)).expect("the page can be written");
        return;
    }
    let text = fs::read_to_string(&file).expect("the page");
    for (promised, ours) in promised(&text).into_iter().zip(ours) {
        assert_eq!(promised.len(), ours.len());
        for ((call, promised), (_, our)) in promised.iter().zip(&ours) {
            assert_eq!(promised, our, "{call:?}");
        }
    }
}
