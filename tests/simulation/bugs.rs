//! The planted bugs: which seed finds each, and what it says.

use std::fs;
use std::path::PathBuf;

use planted::{Bug, plant};

use crate::seeds::{Tried, try_all};

/// Each bug must be found by this many seeds.
const SEEDS_MAX: u64 = 1000;
const BEGIN: &str = "<!-- planted bugs: begin -->\n";
const END: &str = "<!-- planted bugs: end -->";

fn readme() -> PathBuf {
    [
        env!("CARGO_MANIFEST_DIR"),
        "tests",
        "simulation",
        "README.md",
    ]
    .iter()
    .collect()
}

/// The seed that the table names for a bug.
fn known_seed(table: &str, bug: Bug) -> Option<u64> {
    let name = format!("| {bug:?} |");
    let row = table.lines().find(|line| line.starts_with(&name))?;
    row.split('|').nth(3)?.trim().parse().ok()
}

/// Runs with the bug until a seed finds it; the known seed first, since the way of a seed changes with the code.
fn hunt(bug: Bug, known: Option<u64>) -> Tried {
    let groups = known
        .map(|seed| vec![seed])
        .into_iter()
        .chain([(0..SEEDS_MAX).collect()]);
    for seeds in groups {
        let tried = try_all(&seeds, true, || plant(Some(bug)));
        let found = tried
            .into_iter()
            .find(|tried| tried.outcome.violation.is_some());
        if let Some(found) = found {
            return found;
        }
    }
    panic!("{bug:?} is not found by {SEEDS_MAX} seeds");
}

fn row(bug: Bug, found: &Tried) -> String {
    let said = found.outcome.violation.clone().unwrap_or_default();
    let said = said.replace('|', "/").replace('\n', " ");
    format!("| {bug:?} | {} | {} | {said} |\n", bug.text(), found.seed)
}

/// Each planted bug is found. With `RINGMAIN_BLESS` the table of README.md is written anew, from seed 0 on.
#[test]
fn every_planted_bug_is_found() {
    let bless = std::env::var_os("RINGMAIN_BLESS").is_some();
    let text = fs::read_to_string(readme()).expect("our own file");
    let (before, rest) = text.split_once(BEGIN).expect("the table's begin");
    let (table, after) = rest.split_once(END).expect("the table's end");
    let mut new =
        "| bug | what goes wrong | seed | what the checker said |\n|---|---|---|---|\n".to_owned();
    for bug in Bug::ALL {
        let known = known_seed(table, *bug).filter(|_| !bless);
        let found = hunt(*bug, known);
        println!(
            "{bug:?}: seed {}: {}",
            found.seed,
            found.outcome.violation.as_deref().unwrap_or_default()
        );
        new.push_str(&row(*bug, &found));
    }
    if bless {
        fs::write(readme(), format!("{before}{BEGIN}{new}{END}{after}")).expect("our own file");
    }
}
