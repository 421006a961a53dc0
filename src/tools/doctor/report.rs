//! What the doctor says: sections of lines, and how many findings there are.

use std::io::{self, Write};

use super::super::Failure;

pub(super) struct Report<'a> {
    out: &'a mut dyn Write,
    findings: usize,
}

impl<'a> Report<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> Self {
        Report { out, findings: 0 }
    }

    pub(super) fn title(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }

    pub(super) fn section(&mut self, name: &str) -> io::Result<()> {
        writeln!(self.out, "\n{name}")
    }

    /// Something is as it should be.
    pub(super) fn ok(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "  ok    {text}")
    }

    /// Something to know that calls for nothing.
    pub(super) fn note(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "  note  {text}")
    }

    /// Something is wrong, and what to do about it.
    pub(super) fn bad(&mut self, text: &str, remedy: &str) -> io::Result<()> {
        self.findings += 1;
        writeln!(self.out, "  BAD   {text}")?;
        writeln!(self.out, "        -> {remedy}")
    }

    /// The last line; with findings the tool ends with code 1.
    pub(super) fn end(self) -> Result<(), Failure> {
        match self.findings {
            0 => {
                writeln!(self.out, "\nNothing is wrong.")?;
                Ok(())
            }
            count => {
                writeln!(self.out, "\n{}.", super::plural(count, "finding"))?;
                Err(Failure::said())
            }
        }
    }
}
