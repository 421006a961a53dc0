//! What a run found: how many cases, and two files in the target folder that tell what differs, without a name and with one.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::case::Case;
use crate::difference::{Difference, Differences};

#[derive(Clone, Copy, Default)]
struct Count {
    cases: usize,
    equal: usize,
    named: usize,
    different: usize,
}

pub struct Report<'a> {
    differences: &'a Differences,
    counts: BTreeMap<String, Count>,
    path: PathBuf,
    unnamed: File,
    named: File,
    /// What is in the first of the files.
    text: String,
}

impl<'a> Report<'a> {
    pub fn create(differences: &'a Differences) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let file =
            |name: &str| File::create(folder.join(name)).expect("the target folder can be written");
        Self {
            differences,
            counts: BTreeMap::new(),
            path: folder.join("differential-report.txt"),
            unnamed: file("differential-report.txt"),
            named: file("differential-named.txt"),
            text: String::new(),
        }
    }

    pub fn has_failed(&self) -> bool {
        !self.text.is_empty()
    }

    pub fn add(&mut self, case: &Case, found: &[Difference]) {
        let title = format!("{} v{} {}\n", case.base.api, case.version, case.name());
        let (mut named, mut unnamed) = (String::new(), String::new());
        for difference in found {
            match self.differences.find(case, difference) {
                Some(known) => {
                    known.used.set(known.used.get() + 1);
                    let _ = writeln!(named, "  {}\n    {difference}", known.name);
                }
                None => {
                    let _ = writeln!(unnamed, "    {difference}");
                }
            }
        }
        let count = self.counts.entry(case.base.api.clone()).or_default();
        count.cases += 1;
        *match (named.is_empty(), unnamed.is_empty()) {
            (true, true) => &mut count.equal,
            (false, true) => &mut count.named,
            (_, false) => &mut count.different,
        } += 1;
        let write = |mut file: &File, text: &str| {
            if !text.is_empty() {
                file.write_all(format!("{title}{text}").as_bytes())
                    .expect("the target folder can be written");
            }
        };
        write(&self.named, &named);
        write(&self.unnamed, &unnamed);
        if !unnamed.is_empty() {
            self.text += &title;
            self.text += &unnamed;
        }
    }

    /// Says what there is to say, and fails where something differs without a name, or where nothing differs any more
    /// that has one.
    pub fn finish(&self, all: bool) {
        let line = |name: &str, cases: &str, equal: &str, named: &str, different: &str| {
            println!("{name:28}{cases:>8}{equal:>8}{named:>8}{different:>12}");
        };
        line("", "cases", "equal", "named", "different");
        let mut total = Count::default();
        for count in self.counts.values() {
            total.cases += count.cases;
            total.equal += count.equal;
            total.named += count.named;
            total.different += count.different;
        }
        let whole = ("all".to_owned(), total);
        let each = self.counts.iter().map(|(api, count)| (api.clone(), *count));
        for (name, count) in each.chain([whole]) {
            let [cases, equal, named, different] =
                [count.cases, count.equal, count.named, count.different]
                    .map(|number| number.to_string());
            line(&name, &cases, &equal, &named, &different);
        }
        for named in &self.differences.0 {
            println!("{:>6} times: {}", named.used.get(), named.name);
        }
        let unused = self.differences.0.iter();
        let unused = unused.filter(|named| all && named.used.get() == 0);
        let unused: Vec<&str> = unused.map(|named| named.name.as_str()).collect();
        assert!(
            total.different == 0 && unused.is_empty(),
            "{} cases differ, see {}; differences that are none any more: {unused:?}\n{}",
            total.different,
            self.path.display(),
            self.text.chars().take(20_000).collect::<String>()
        );
    }
}
