//! Which function an address lies in.

use std::collections::{BTreeSet, HashMap};
use std::ffi::c_void;
use std::fs;

/// Where the kernel's addresses begin.
const KERNEL: u64 = 1 << 63;

/// For each address the functions around it, from the outermost inwards: more than one where some were inlined. An
/// address is one behind the instruction it stands for.
pub(super) fn of<'a>(addresses: impl Iterator<Item = &'a u64>) -> HashMap<u64, Vec<String>> {
    let all: BTreeSet<u64> = addresses.copied().collect();
    let kernels = match all.last() {
        Some(last) if *last >= KERNEL => fs::read_to_string("/proc/kallsyms").unwrap_or_default(),
        _ => String::new(),
    };
    let kernels = Kernel::parse(&kernels);
    let named = all.into_iter().map(|address| {
        let names = match address >= KERNEL {
            true => vec![kernels.at(address - 1).to_owned()],
            false => of_program(address),
        };
        (address, names)
    });
    let named = named.collect();
    // The tables that it read take some ten MiB.
    backtrace::clear_symbol_cache();
    named
}

fn of_program(address: u64) -> Vec<String> {
    let mut names = Vec::new();
    // It looks one before the address, as for return addresses.
    backtrace::resolve(address as *mut c_void, |symbol| {
        if let Some(name) = symbol.name() {
            names.push(folded(&format!("{name:#}")));
        }
    });
    if names.is_empty() {
        names.push("(unknown)".to_owned());
    }
    names.reverse();
    names
}

/// The kernel's functions, by address.
struct Kernel<'a>(Vec<(u64, &'a str)>);

impl<'a> Kernel<'a> {
    /// Lines of `/proc/kallsyms`: address, kind, name, and perhaps a module. All addresses are 0 for who may not see
    /// them.
    fn parse(text: &'a str) -> Self {
        let symbols = text.lines().filter_map(|line| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let kind = words.next()?;
            let name = words.next()?;
            (address != 0 && matches!(kind, "t" | "T" | "w" | "W")).then_some((address, name))
        });
        let mut symbols: Vec<_> = symbols.collect();
        symbols.sort_unstable();
        Kernel(symbols)
    }

    fn at(&self, address: u64) -> &'a str {
        let behind = self.0.partition_point(|(start, _)| *start <= address);
        match behind.checked_sub(1) {
            Some(index) => self.0[index].1,
            None => "(kernel)",
        }
    }
}

/// A name without the characters that separate names.
pub(super) fn folded(name: &str) -> String {
    name.replace(';', ":").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_the_kernel_are_found_by_address() {
        let text = "ffffffff81000000 T first\nffffffff81000100 t second [module]\nffffffff81000180 D data\n";
        let kernel = Kernel::parse(text);
        assert_eq!(kernel.at(0xffff_ffff_8100_00ff), "first");
        assert_eq!(kernel.at(0xffff_ffff_8100_0190), "second");
        assert_eq!(kernel.at(0xffff_ffff_8000_0000), "(kernel)");
        assert_eq!(
            Kernel::parse("0000000000000000 T hidden\n").at(KERNEL),
            "(kernel)"
        );
    }

    #[test]
    fn a_function_of_the_program_has_its_name() {
        let address = functions_of_the_kernel_are_found_by_address as fn() as usize as u64 + 1;
        let names = of([address].iter());
        let innermost = names[&address].last().unwrap();
        assert!(
            innermost.ends_with("functions_of_the_kernel_are_found_by_address"),
            "{innermost}"
        );
        assert_eq!(of([1_u64].iter())[&1], ["(unknown)"]);
    }
}
