//! The saved inputs of a fuzz target: one file a target, each input behind two bytes of its length.

use std::path::Path;

/// The inputs of a target in this folder; none where it has no file.
pub fn read(folder: &Path, target: &str) -> Vec<Vec<u8>> {
    let path = folder.join(format!("{target}.inputs"));
    let bytes = std::fs::read(path).unwrap_or_default();
    let mut rest = &bytes[..];
    let mut inputs = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (input, behind) = behind.split_at(length.min(behind.len()));
        inputs.push(input.to_vec());
        rest = behind;
    }
    inputs
}
