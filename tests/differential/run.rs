//! Chooses cases, asks both brokers, compares, and says what it saw.
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::case::{Base, Case, Names};
use crate::difference::{Difference, Differences, compare, matches};
use crate::messages::Api;
use crate::mutation::{self, Mutation};
use crate::normal::normalise;
use crate::report::Report;
use crate::side::{Answer, Outcome, PATIENCE, PATIENCE_WITH_THE_SILENT, Request};
use crate::stage::Stage;
use crate::support::clock;
use crate::support::random::{self, Random};
use crate::value::Value;
use crate::{bases, fixture};

/// Cases of each base in each version in a sample.
const SAMPLE: usize = 1;

/// Pairs of mutations of each base in each version.
const PAIRS: usize = 6;

/// How long what a request did may take to show.
const SETTLED: Duration = Duration::from_secs(60);

/// And how long where the run has failed already: one more case that waits in vain says nothing new.
const SETTLED_AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Answers that tell of what earlier cases made, which Apache shows late on a busy machine: they are asked for again.
const LISTS: [&str; 1] = ["Metadata"];

/// Between two askings.
const PAUSE: Duration = Duration::from_millis(200);

/// A case that took longer is told.
const SLOW: Duration = Duration::from_secs(2);

pub fn run() {
    // The same choice in every run, unless another is asked for: a change is to blame for what it breaks.
    let seed = std::env::var("RINGMAIN_TEST_SEED").map_or(1, |_| random::seed());
    let whole = std::env::var("RINGMAIN_DIFFERENTIAL").unwrap_or_default();
    println!("RINGMAIN_TEST_SEED={seed} repeats this choice of cases");
    let mut stage = Stage::start();
    fixture::make(&mut stage);
    let cases = choose(&mut stage, &whole, &mut Random::new(seed));
    println!("{} cases", cases.len());
    let differences = Differences::parse(include_str!("differences.txt"));
    let mut report = Report::create(&differences);
    for (number, case) in cases.iter().enumerate() {
        if number % 1_000 == 999 {
            println!("{} done, at {} v{}", number, case.base.api, case.version);
        }
        let start = clock::now();
        let patience = if report.has_failed() {
            SETTLED_AFTER_FAILURE
        } else {
            SETTLED
        };
        let found = ask(&mut stage, &differences, case, Names(number), patience);
        if start.elapsed() > SLOW {
            let (api, version) = (&case.base.api, case.version);
            println!(
                "slow: {api} v{version} {}: {:?}",
                case.name(),
                start.elapsed()
            );
        }
        report.add(case, &found);
    }
    report.finish(whole == "all");
}

/// Every base in every version that both serve, each with its mutations and some pairs of them; or a sample of that.
fn choose(stage: &mut Stage, whole: &str, random: &mut Random) -> Vec<Case> {
    let mut chosen = Vec::new();
    for (base, mut versions) in served(stage) {
        let api = &stage.apis[&base.api];
        if whole.is_empty() && base.is_one_case() {
            // The same in every version: the lowest, the highest and one between stand for all.
            let between = random.between(0, versions.len().max(1));
            let last = versions.len().saturating_sub(1);
            let mut at = 0..;
            versions.retain(|_| [0, between, last].contains(&at.next().expect("no end")));
        }
        for version in versions {
            let mut cases = cases(api, &base, version);
            match whole {
                "all" => {}
                "" => {
                    while cases.len() > SAMPLE {
                        cases.swap_remove(random.between(0, cases.len()));
                    }
                }
                wanted => cases.retain(|case| {
                    let name = format!("{} v{version} {}", case.base.api, case.name());
                    matches(wanted, &name)
                }),
            }
            chosen.extend(cases);
        }
    }
    chosen
}

/// All cases of a base in a version, the same in every run.
fn cases(api: &Api, base: &Base, version: i16) -> Vec<Case> {
    let mut random = Random::new(version.unsigned_abs().into());
    let body = (base.request)(Names(0));
    let mut mutations = mutation::all(&api.request, version, &body, &(base.records)());
    mutations.retain(|mutation| {
        let has = |part: &str| mutation.name.contains(part);
        base.mutated.is_some_and(has) && !base.without.iter().any(|part| has(part))
    });
    let mut done: Vec<Vec<Mutation>> = vec![Vec::new()];
    if mutations.len() > PAIRS {
        for _ in 0..PAIRS {
            let one = mutations[random.between(0, mutations.len())].clone();
            let other = mutations[random.between(0, mutations.len())].clone();
            if one.change.fits(&other.change) {
                done.push(vec![one, other]);
            }
        }
    }
    mutations.extend((base.more)());
    done.extend(mutations.into_iter().map(|mutation| vec![mutation]));
    let case = |mutations| Case {
        base: base.clone(),
        version,
        mutations,
    };
    done.into_iter().map(case).collect()
}

/// The bases of what this broker serves, with the versions that it serves them in.
fn served(stage: &mut Stage) -> Vec<(Base, Vec<i16>)> {
    let answers = stage.call("ApiVersions", 0, Value::Struct([].into()));
    let Some(Value::Array(keys)) = answers[1].field("api_keys") else {
        panic!("{}", answers[1]);
    };
    let mut ranges: BTreeMap<i64, Vec<i16>> = BTreeMap::new();
    for key in keys {
        let number = |name: &str| key.int(name).expect("a number");
        let versions = number("min_version")..=number("max_version");
        let versions = versions.map(|version| i16::try_from(version).expect("a version"));
        ranges.insert(number("api_key"), versions.collect());
    }
    let mut bases = bases::all();
    let written: BTreeSet<String> = bases.iter().map(|base| base.api.clone()).collect();
    for api in stage.apis.values() {
        if ranges.contains_key(&api.key.into()) && !written.contains(&api.name) {
            bases.push(bases::plain(api));
        }
    }
    let with_versions = bases.into_iter().map(|base| {
        let api = &stage.apis[&base.api];
        let mut versions = ranges.get(&api.key.into()).cloned().unwrap_or_default();
        versions.retain(|version| {
            base.versions.contains(version) && api.request.versions.contains(*version)
        });
        (base, versions)
    });
    with_versions.collect()
}

/// Where the two differ in this case.
fn ask(
    stage: &mut Stage,
    differences: &Differences,
    case: &Case,
    names: Names,
    patience: Duration,
) -> Vec<Difference> {
    for side in &mut stage.sides {
        // What other cases made is looked for in every text otherwise, and there are thousands.
        side.known
            .retain(|name, _| name != "end" && !name.starts_with("new-"));
    }
    (case.base.prepare)(stage, names);
    let patience_for_answers = if differences.tell_of_silence(case) {
        PATIENCE_WITH_THE_SILENT
    } else {
        PATIENCE
    };
    let outcomes = stage.ask_within(patience_for_answers, &case.request(names));
    let mut found = differ("", stage, names, outcomes);
    if LISTS.contains(&case.base.api.as_str()) {
        let end = clock::now() + patience;
        while !differences.cover(case, &found) && clock::now() < end {
            clock::pause(PAUSE);
            let outcomes = stage.ask_within(patience_for_answers, &case.request(names));
            found = differ("", stage, names, outcomes);
        }
    }
    if let Some(then) = case.base.then {
        let (api, version, body) = then(names);
        let request = Request {
            api: api.to_owned(),
            version,
            body,
            frame: Default::default(),
        };
        // Where the answers differ already and nobody says why, so will what came of it.
        let patience = if differences.cover(case, &found) {
            patience
        } else {
            Duration::ZERO
        };
        let end = clock::now() + patience;
        loop {
            let outcomes = stage.ask(&request);
            let after = differ("then ", stage, names, outcomes);
            let settled = differences.cover(case, &after);
            if settled || clock::now() > end {
                found.extend(after);
                break;
            }
        }
    }
    found
}

fn differ(prefix: &str, stage: &Stage, names: Names, outcomes: [Outcome; 2]) -> Vec<Difference> {
    let connections = outcomes
        .each_ref()
        .map(|outcome| format!("{:?}", outcome.connection));
    let mut found = Vec::new();
    let mut note = |path: &str, [apache, ours]: [String; 2]| {
        if apache != ours {
            let path = path.to_owned();
            found.push(Difference { path, apache, ours });
        }
    };
    note("connection", connections);
    let [apache, ours] = outcomes.map(|outcome| outcome.answer);
    match (apache, ours) {
        (Answer::Value(apache), Answer::Value(ours)) => {
            let apache = normalise(&stage.sides[0], &names, apache);
            let ours = normalise(&stage.sides[1], &names, ours);
            compare("", &apache, &ours, &mut found);
        }
        (apache, ours) => note("answer", [apache, ours].map(|answer| text(&answer))),
    }
    for difference in &mut found {
        difference.path.insert_str(0, prefix);
    }
    found
}

fn text(answer: &Answer) -> String {
    match answer {
        Answer::Value(value) => value.to_string(),
        Answer::Unreadable(why) => format!("unreadable: {why}"),
        Answer::None => "none".to_owned(),
    }
}
