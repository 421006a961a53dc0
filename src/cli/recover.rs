//! `ringmain recover`: puts the journals of a directory that a crash left back into its segments, so that another broker,
//! Apache Kafka's too, finds every acknowledged record there.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use clap::Args;
use shards::io::dir;
use shards::{Core, CoreMain, Runtime, RuntimeOptions};
use storage::disk;
use storage::journal::{self, JournalReport};

use super::{Failure, print_line};
use crate::config::directories::META_PROPERTIES;

#[derive(Args, Debug)]
pub(super) struct RecoverArgs {
    /// The log directories of the broker that was killed, as in `log.dirs`
    #[arg(required = true, value_name = "DIRECTORY")]
    directories: Vec<PathBuf>,
}

pub(super) fn run(arguments: RecoverArgs, out: &mut dyn Write) -> Result<(), Failure> {
    let (results, received) = mpsc::channel();
    let options = RuntimeOptions {
        cores: 1,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).map_err(|error| Failure::new(error.to_string()))?;
    let directories = arguments.directories;
    let main: CoreMain = Box::new(move |core: Core| {
        Box::pin(async move {
            for directory in directories {
                let result = recover(&core, &directory).await;
                let failed = result.is_err();
                let _ = results.send((directory, result));
                if failed {
                    return;
                }
            }
        })
    });
    runtime
        .run(vec![main])
        .map_err(|error| Failure::new(error.to_string()))?;
    for (directory, result) in received {
        let shown = directory.display();
        for line in lines(&result.map_err(|why| Failure::new(format!("{shown}: {why}")))?) {
            print_line(out, format!("{shown}: {line}"))?;
        }
    }
    Ok(())
}

async fn recover(core: &Core, directory: &Path) -> Result<JournalReport, String> {
    if dir::metadata(core, &directory.join(META_PROPERTIES))
        .await
        .is_err()
    {
        return Err(format!(
            "no log directory of a broker: it has no {META_PROPERTIES}; name what `log.dirs` names"
        ));
    }
    let _lock = disk::lock(core, directory).await.map_err(|error| {
        format!("{error}; a running broker does this by itself, stop it first if you mean another")
    })?;
    let clean = disk::read_clean_marker(core, directory)
        .await
        .map_err(|error| error.to_string())?;
    journal::replay(core, directory, clean.is_some())
        .await
        .map_err(|error| error.to_string())
}

fn lines(report: &JournalReport) -> Vec<String> {
    if report.journals == 0 && report.set_aside.is_empty() {
        return vec!["nothing to do: there is no journal".to_owned()];
    }
    let mut lines = Vec::new();
    if report.journals > 0 {
        lines.push(format!(
            "{} journals with {} entries ({} bytes), {} bytes of them were missing in their segments; {} entries of \
             partitions that are deleted",
            report.journals, report.entries, report.bytes, report.written_bytes, report.gone
        ));
    }
    let conflict =
        |place| format!("left out, because another broker has written there since: {place}");
    lines.extend(report.conflicts.iter().map(conflict));
    let aside = |path: &PathBuf| {
        format!(
            "older than the last clean stop, set aside: {}",
            path.display()
        )
    };
    lines.extend(report.set_aside.iter().map(aside));
    let damaged = |path: &PathBuf| {
        format!(
            "its first block is damaged, so that it cannot be read, set aside: {}",
            path.display()
        )
    };
    lines.extend(report.damaged.iter().map(damaged));
    lines
}
