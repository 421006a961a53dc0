//! Log directories that have failed or are nearly full.

use protocol::ErrorCode;
use protocol::messages::DescribeLogDirsRequest;

use super::super::Failure;
use super::Patient;
use super::report::Report;

pub(super) fn examine(patient: &mut Patient, report: &mut Report<'_>) -> Result<(), Failure> {
    report.section("Disks")?;
    let brokers: Vec<_> = patient
        .brokers
        .iter()
        .map(|(id, node, _)| (*id, *node))
        .collect();
    for (id, node) in brokers {
        let request = DescribeLogDirsRequest {
            // No partitions: the directories are enough.
            topics: Some([].into()),
        };
        let answer = match patient.client.send(node, &request) {
            Ok(answer) => answer,
            Err(error) => {
                report.bad(
                    &format!("broker {id} does not tell of its log directories: {error}"),
                    "look whether it runs, and at its log",
                )?;
                continue;
            }
        };
        for directory in answer.results {
            let path = &directory.log_dir;
            let (free, total) = (directory.usable_bytes, directory.total_bytes);
            if directory.error_code != 0 {
                let error = ErrorCode::from_i16(directory.error_code).unwrap_or_default();
                report.bad(
                    &format!("broker {id}: {path} is offline ({})", error.name()),
                    "repair or replace the disk, then start the broker again; its log says what failed first",
                )?;
            } else if total > 0 && (free as f64) < patient.min_free * total as f64 {
                report.bad(
                    &format!("broker {id}: {path} is nearly full, {} of {} are free", size(free), size(total)),
                    "delete topics or records, or give it more space; a full disk refuses writes and goes on by itself when there is space",
                )?;
            } else if total > 0 {
                report.ok(&format!(
                    "broker {id}: {path}, {} of {} are free",
                    size(free),
                    size(total)
                ))?;
            } else {
                report.ok(&format!("broker {id}: {path}"))?;
            }
        }
    }
    Ok(())
}

fn size(bytes: i64) -> String {
    const GIB: f64 = (1u64 << 30) as f64;
    let gib = bytes as f64 / GIB;
    if gib < 1.0 {
        format!("{:.0} MiB", gib * 1024.0)
    } else {
        format!("{gib:.1} GiB")
    }
}
