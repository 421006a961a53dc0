//! Offsets as CSV, and moments as text.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::{SpanRelativeTo, Timestamp, Unit};
use protocol::Str;

use crate::tools::client::Partition;

/// New offsets by group.
pub(super) type Plan = BTreeMap<Str, BTreeMap<Partition, i64>>;

/// Kafka's tool quotes what is longer, whatever is in it.
const UNQUOTED_MAX: usize = 24;

/// `topic,partition,offset`, with the group before where several were asked for.
pub(super) fn export(plan: &Plan, single: bool) -> String {
    let mut text = String::new();
    for (group, offsets) in plan {
        for (partition, offset) in offsets {
            if !single {
                text.push_str(&field(group));
                text.push(',');
            }
            let topic = field(&partition.topic);
            text.push_str(&format!("{topic},{},{offset}\n", partition.number));
        }
    }
    text
}

fn field(text: &str) -> String {
    // All that CSV gives a meaning to stands before the hyphen.
    let plain = text.bytes().all(|byte| byte >= b'-') && text.len() <= UNQUOTED_MAX;
    match plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('"', "\"\"")),
    }
}

/// Reads what `export` writes. Lines without a group are for the only group there is.
pub(super) fn read(path: &Path, groups: &[Str]) -> Result<Plan, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("--from-file {}: {error}", path.display()))?;
    parse(&text, groups).map_err(|why| format!("--from-file {}: {why}", path.display()))
}

fn parse(text: &str, groups: &[Str]) -> Result<Plan, String> {
    let mut plan = Plan::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim().is_empty() {
            continue;
        }
        let wrong = || {
            format!(
                "line {number} must be topic,partition,offset, or with the group before: {line}"
            )
        };
        let fields = fields(line);
        let (group, rest) = match (&fields[..], groups) {
            ([_, _, _], [group]) => (group.clone(), &fields[..]),
            ([group, rest @ ..], _) if rest.len() == 3 => (Str::from(group), rest),
            _ => return Err(wrong()),
        };
        let partition = Partition {
            topic: Str::from(&rest[0]),
            number: rest[1].trim().parse().map_err(|_| wrong())?,
        };
        let offset = rest[2].trim().parse().map_err(|_| wrong())?;
        plan.entry(group).or_default().insert(partition, offset);
    }
    Ok(plan)
}

fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.trim_end_matches('\r').chars().peekable();
    while let Some(letter) = letters.next() {
        let twice = quoted && letter == '"' && letters.peek() == Some(&'"');
        if twice {
            letters.next();
        } else if letter == '"' {
            quoted = !quoted;
            continue;
        } else if letter == ',' && !quoted {
            fields.push(String::new());
            continue;
        }
        if let Some(field) = fields.last_mut() {
            field.push(letter);
        }
    }
    fields
}

/// `YYYY-MM-DDThh:mm:ss.sss`, in UTC unless it says otherwise.
pub(super) fn moment(text: &str) -> Result<i64, String> {
    let time = text.split_once('T').map(|(_, time)| time);
    let zoned = time.is_some_and(|time| time.contains(['+', '-', 'Z']));
    let parsed: Result<Timestamp, _> = match zoned {
        true => text.parse(),
        false => format!("{text}Z").parse(),
    };
    parsed
        .map(Timestamp::as_millisecond)
        .map_err(|_| format!("--to-datetime {text}: it must be YYYY-MM-DDThh:mm:ss.sss, and may end with a zone such as +01:00"))
}

/// `PnDTnHnMnS` before now.
pub(super) fn moment_before_now(text: &str) -> Result<i64, String> {
    let millis = duration_ms(text)?;
    Ok(Timestamp::now().as_millisecond().saturating_sub(millis))
}

fn duration_ms(text: &str) -> Result<i64, String> {
    let wrong = || format!("--by-duration {text}: it must be PnDTnHnMnS, such as PT2H30M");
    let span: jiff::Span = text.parse().map_err(|_| wrong())?;
    if span.get_years() != 0 || span.get_months() != 0 {
        return Err(wrong());
    }
    let total = (Unit::Millisecond, SpanRelativeTo::days_are_24_hours());
    let millis = span.total(total).map_err(|_| wrong())?;
    Ok(millis as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exported_can_be_read() {
        let long = "a-topic-with-a-name-beyond-24";
        let mut plan = Plan::new();
        for (group, topic, number, offset) in
            [("g", "t", 1, 5), ("g", long, 0, 7), ("h,\"", "t", 0, 9)]
        {
            let topic = topic.into();
            let offsets = plan.entry(group.into()).or_default();
            offsets.insert(Partition { topic, number }, offset);
        }
        let text = export(&plan, false);
        assert_eq!(
            text,
            format!("g,\"{long}\",0,7\ng,t,1,5\n\"h,\"\"\",t,0,9\n")
        );
        assert_eq!(parse(&text, &[]).unwrap(), plan);
        plan.remove("h,\"");
        let text = export(&plan, true);
        assert_eq!(text, format!("\"{long}\",0,7\nt,1,5\n"));
        assert_eq!(parse(&text, &["g".into()]).unwrap(), plan);
        assert!(parse("t,1", &["g".into()]).is_err());
        assert!(parse("t,x,1", &["g".into()]).is_err());
    }

    #[test]
    fn moments_and_durations_are_iso() {
        assert_eq!(moment("2026-01-01T00:00:00.500"), Ok(1_767_225_600_500));
        assert_eq!(
            moment("2026-01-01T01:00:00.500+01:00"),
            Ok(1_767_225_600_500)
        );
        assert!(moment("2026-01-01").is_err());
        assert_eq!(duration_ms("P1DT2H3M4.5S"), Ok(93_784_500));
        assert!(duration_ms("P1Y").is_err());
        assert!(duration_ms("soon").is_err());
    }
}
