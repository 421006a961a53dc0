//! The names that the doctor reads are names that there are.

use super::limits::{BUDGETS, PARKED, SIGNS, STALLS};
use super::{listener, some_of};
use crate::http::metric_names;

#[test]
fn every_number_that_is_read_exists() {
    let known = metric_names();
    let budgets = BUDGETS
        .iter()
        .flat_map(|(_, used, limit, waits, waiting)| [*used, *limit, *waits, *waiting]);
    let signs = SIGNS.iter().map(|(name, ..)| *name);
    for name in budgets.chain(signs).chain([PARKED, STALLS]) {
        assert!(known.contains(name), "{name}");
    }
}

#[test]
fn listeners_are_read_as_they_are_written() {
    let (name, address) = listener("EXTERNAL://[::1]:9092").unwrap();
    assert_eq!(
        (name.as_str(), address.to_string().as_str()),
        ("EXTERNAL", "[::1]:9092")
    );
    assert_eq!(listener("PLAINTEXT://:9092").unwrap().1.host, "");
    assert!(listener("localhost:9092").is_none());
}

#[test]
fn long_lists_are_cut() {
    let names: Vec<String> = (0..12).map(|number| number.to_string()).collect();
    assert_eq!(some_of(&names), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    assert_eq!(some_of(&names[..1]), "0");
}
