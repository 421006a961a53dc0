//! `ringmain dump-log`: what is in the files of a log directory, as `kafka-dump-log.sh` shows it.
//!
//! `README.md` beside this file says where the two differ. Everything is read as it comes, one batch at a time, so
//! that a file of any size and any content takes little memory.

mod control;
mod decoders;
mod entries;
mod index;
mod log;
mod remote;
mod state;

use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use self::decoders::{Decoder, TextDecoder};
pub(super) use self::remote::show as remote_log_metadata;
use super::Failure;

/// Kafka's flags.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "Kafka's flags")]
pub struct DumpLogArgs {
    /// The files: .log, .checkpoint, .index, .timeindex, .snapshot, .txnindex
    #[arg(long, value_name = "FILE,...", value_delimiter = ',', required = true)]
    files: Vec<PathBuf>,
    /// Print the records' keys and values; any decoder does so too
    #[arg(long)]
    print_data_log: bool,
    /// Print every record, not only batches
    #[arg(long)]
    deep_iteration: bool,
    /// Leave out what is known of each record besides key and value
    #[arg(long)]
    skip_record_metadata: bool,
    /// Stop after this many bytes of a log
    #[arg(long, value_name = "BYTES", default_value_t = i32::MAX, value_parser = clap::value_parser!(i32).range(0..))]
    max_bytes: i32,
    /// The size of the largest batch, which is what the check of an index reads at each entry
    #[arg(long, value_name = "BYTES", default_value_t = 5 << 20, value_parser = clap::value_parser!(i32).range(0..))]
    max_message_size: i32,
    /// Only check an index as a broker does when it starts
    #[arg(long)]
    index_sanity_check: bool,
    /// Compare an index with its log, and print only what does not fit
    #[arg(long)]
    verify_index_only: bool,
    /// What values are: the name of one of Kafka's own decoders (String, Integer, Long or Default, which is shown as hex)
    #[arg(long, value_name = "CLASS", num_args = 0..=1, default_missing_value = "StringDecoder")]
    value_decoder_class: Option<TextDecoder>,
    /// The same of keys
    #[arg(long, value_name = "CLASS", num_args = 0..=1, default_missing_value = "StringDecoder")]
    key_decoder_class: Option<TextDecoder>,
    /// The records are those of __consumer_offsets
    #[arg(long)]
    offsets_decoder: bool,
    /// The records are those of __transaction_state
    #[arg(long)]
    transaction_log_decoder: bool,
    /// The records are those of __cluster_metadata
    #[arg(long)]
    cluster_metadata_decoder: bool,
    /// The records are those of __remote_log_metadata
    #[arg(long)]
    remote_log_metadata_decoder: bool,
    /// The records are those of __share_group_state
    #[arg(long)]
    share_group_state_decoder: bool,
}

impl DumpLogArgs {
    /// The first of several, as in Kafka.
    fn decoder(&self) -> Decoder {
        if self.offsets_decoder {
            Decoder::Offsets
        } else if self.transaction_log_decoder {
            Decoder::Transactions
        } else if self.cluster_metadata_decoder {
            Decoder::ClusterMetadata
        } else if self.remote_log_metadata_decoder {
            Decoder::RemoteLogMetadata
        } else if self.share_group_state_decoder {
            Decoder::ShareGroupState
        } else {
            Decoder::Text {
                key: self.key_decoder_class.unwrap_or_default(),
                value: self.value_decoder_class.unwrap_or_default(),
            }
        }
    }

    fn prints_records(&self) -> bool {
        self.print_data_log
            || self.value_decoder_class.is_some()
            || self.key_decoder_class.is_some()
            || !matches!(self.decoder(), Decoder::Text { .. })
    }
}

/// What was found to be wrong, printed behind everything else. Beyond [`Findings::MOST`] of one kind in a file they are
/// only counted.
#[derive(Default)]
struct Findings {
    index_mismatches: BTreeMap<PathBuf, Pairs>,
    time_mismatches: BTreeMap<PathBuf, Pairs>,
    time_disorder: BTreeMap<PathBuf, Pairs>,
    time_not_found: BTreeMap<PathBuf, Pairs>,
    holes: BTreeMap<PathBuf, Pairs>,
}

#[derive(Default)]
struct Pairs {
    pairs: Vec<(i64, i64)>,
    more: u64,
}

impl Findings {
    const MOST: usize = 1 << 20;

    fn add(kind: &mut BTreeMap<PathBuf, Pairs>, path: &Path, first: i64, second: i64) {
        let pairs = kind.entry(absolute(path)).or_default();
        if pairs.pairs.len() < Findings::MOST {
            pairs.pairs.push((first, second));
        } else {
            pairs.more += 1;
        }
    }

    /// Kafka keeps some of them in a map by the first number: one for each, in its order.
    fn print(mut self, errors: &mut dyn Write) -> std::io::Result<()> {
        for pairs in self.index_mismatches.values_mut() {
            pairs.one_for_each();
            pairs.pairs.reverse();
        }
        self.holes.values_mut().for_each(Pairs::one_for_each);
        for (path, pairs) in &self.index_mismatches {
            writeln!(errors, "Mismatches in :{}", path.display())?;
            pairs.print(errors, "  Index offset: ", ", log offset: ")?;
        }
        for (path, pairs) in &self.time_mismatches {
            writeln!(errors, "Found timestamp mismatch in :{}", path.display())?;
            pairs.print(errors, "  Index timestamp: ", ", log timestamp: ")?;
        }
        for (path, pairs) in &self.time_disorder {
            writeln!(
                errors,
                "Found out of order timestamp in :{}",
                path.display()
            )?;
            let between = ", Previously indexed timestamp: ";
            pairs.print(errors, "  Index timestamp: ", between)?;
        }
        for (path, pairs) in &self.time_not_found {
            let path = path.display();
            writeln!(
                errors,
                "The following indexed offsets are not found in :{path}"
            )?;
            pairs.print(errors, "Indexed offset: ", ", found log offset: ")?;
        }
        for (path, pairs) in &self.holes {
            writeln!(errors, "Non-consecutive offsets in {}", path.display())?;
            pairs.print(errors, "  ", " is followed by ")?;
        }
        Ok(())
    }
}

impl Pairs {
    fn print(&self, errors: &mut dyn Write, before: &str, between: &str) -> std::io::Result<()> {
        for (first, second) in &self.pairs {
            writeln!(errors, "{before}{first}{between}{second}")?;
        }
        if self.more > 0 {
            writeln!(errors, "  and {} more", self.more)?;
        }
        Ok(())
    }

    fn one_for_each(&mut self) {
        let last: BTreeMap<i64, i64> = self.pairs.drain(..).collect();
        self.pairs = last.into_iter().collect();
    }
}

/// Runs the command. What is found to be wrong goes to standard error, as in Kafka, and does not fail the command.
pub(super) fn run(
    arguments: &DumpLogArgs,
    out: &mut dyn Write,
    errors: &mut dyn Write,
) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    let mut findings = Findings::default();
    for path in &arguments.files {
        let dumped = dump(arguments, path, &mut out, errors, &mut findings);
        out.flush()?;
        dumped?;
    }
    findings
        .print(errors)
        .map_err(|error| Failure::new(format!("standard error: {error}")))
}

fn dump(
    arguments: &DumpLogArgs,
    path: &Path,
    out: &mut dyn Write,
    errors: &mut dyn Write,
    findings: &mut Findings,
) -> Result<(), Failure> {
    writeln!(out, "Dumping {}", path.display())?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let suffix = name.rsplit_once('.').map_or("", |(_, suffix)| suffix);
    match suffix {
        "log" | "checkpoint" => log::dump(arguments, path, out, findings),
        "index" => index::dump_offsets(arguments, path, out, findings),
        "timeindex" => index::dump_times(arguments, path, out, findings),
        "snapshot" => state::dump_producers(path, out, errors),
        "txnindex" => state::dump_aborted(path, out),
        _ => {
            out.flush()?;
            // Nobody is left to be told if standard error is gone.
            let _ = writeln!(errors, "Ignoring unknown file {}", path.display());
            Ok(())
        }
    }
}

/// The path as Kafka names it: from the root, nothing resolved.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The offset in front of the first point of a file's name.
fn offset_of(path: &Path) -> Result<i64, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let digits = name.split('.').next().unwrap_or_default();
    digits.parse().map_err(|_| {
        Failure::new(format!(
            "{}: the name must begin with the offset of the segment",
            path.display()
        ))
    })
}

fn failed(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {why}", path.display()))
}
