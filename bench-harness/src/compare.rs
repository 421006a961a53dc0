//! `compare`: two stored results side by side.

use std::path::Path;

use anyhow::Result;

use crate::report::Report;
use crate::table;

pub fn print(first: &Path, second: &Path) -> Result<()> {
    println!(
        "{}",
        table::side_by_side(&Report::load(first)?, &Report::load(second)?)
    );
    Ok(())
}
