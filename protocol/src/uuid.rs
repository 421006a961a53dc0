use std::fmt;
use std::str::FromStr;

/// 128 bits that name a topic, a directory, a cluster, an incarnation.
///
/// As text: base64 with the alphabet that is safe in URLs, without padding, 22 characters.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Uuid(pub [u8; 16]);

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const TEXT_LEN: usize = 22;

impl Uuid {
    /// No id. Of directories: not assigned to one.
    pub const ZERO: Uuid = Uuid([0; 16]);
    /// The metadata topic's id. Of directories: a lost one.
    pub const ONE: Uuid = Uuid::from_halves(0, 1);

    pub const fn from_halves(most: u64, least: u64) -> Self {
        Uuid((((most as u128) << 64) | least as u128).to_be_bytes())
    }

    pub fn is_zero(&self) -> bool {
        *self == Uuid::ZERO
    }

    /// A random one (RFC 4122, version 4) from a source of random bits. The first hundred numbers
    /// are reserved, and a leading `-` would look like an option on a command line.
    pub fn random(mut bits: impl FnMut() -> u64) -> Self {
        loop {
            let most = (bits() & !0xf000) | 0x4000;
            let least = (bits() & !(0b11 << 62)) | (0b10 << 62);
            let id = Uuid::from_halves(most, least);
            if id.text()[0] != b'-' {
                return id;
            }
        }
    }

    fn text(&self) -> [u8; TEXT_LEN] {
        // 128 bits are 21 groups of six and two bits, to which four zeros are added.
        let value = u128::from_be_bytes(self.0);
        let mut text = [0; TEXT_LEN];
        for (at, letter) in text.iter_mut().enumerate().take(TEXT_LEN - 1) {
            *letter = ALPHABET[(value >> (122 - 6 * at)) as usize & 63];
        }
        text[TEXT_LEN - 1] = ALPHABET[((value & 3) << 4) as usize];
        text
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        f.pad(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Not the text of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UuidError;

impl fmt::Display for UuidError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is 22 characters of A-Z a-z 0-9 - _")
    }
}

impl std::error::Error for UuidError {}

impl FromStr for Uuid {
    type Err = UuidError;

    /// Up to two `=` of padding are accepted.
    fn from_str(text: &str) -> Result<Self, UuidError> {
        let letters = text.as_bytes();
        let letters = match letters.get(TEXT_LEN..) {
            Some(b"" | b"=" | b"==") => &letters[..TEXT_LEN],
            _ => return Err(UuidError),
        };
        let mut value: u128 = 0;
        for (at, letter) in letters.iter().enumerate() {
            let digit = match letter {
                b'A'..=b'Z' => letter - b'A',
                b'a'..=b'z' => letter - b'a' + 26,
                b'0'..=b'9' => letter - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return Err(UuidError),
            };
            if at < TEXT_LEN - 1 {
                value = (value << 6) | u128::from(digit);
            } else {
                // The last four bits are padding; Java ignores what they are.
                value = (value << 2) | u128::from(digit >> 4);
            }
        }
        Ok(Uuid(value.to_be_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_as_java_writes_it() {
        assert_eq!(Uuid::ZERO.to_string(), "AAAAAAAAAAAAAAAAAAAAAA");
        assert_eq!(Uuid::ONE.to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(Uuid([0xff; 16]).to_string(), "_____________________w");
        let id = Uuid(*b"0123456789abcdef");
        assert_eq!(id.to_string(), "MDEyMzQ1Njc4OWFiY2RlZg");
    }

    #[test]
    fn text_round_trips() {
        let mut state = 1u64;
        for _ in 0..1000 {
            let id = Uuid::random(|| {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                state ^ (state >> 29)
            });
            let text = id.to_string();
            assert_eq!(text.parse(), Ok(id));
            assert_eq!(format!("{text}==").parse(), Ok(id));
            assert!(!text.starts_with('-'));
            assert_eq!((id.0[6] >> 4, id.0[8] >> 6), (4, 2));
        }
    }

    #[test]
    fn wrong_text_is_refused() {
        let id = Uuid([7; 16]).to_string();
        for wrong in [
            "",
            &id[1..],
            &format!("{id}A"),
            &format!("{id}==="),
            &id.replace('B', "+"),
        ] {
            assert_eq!(wrong.parse::<Uuid>(), Err(UuidError), "{wrong}");
        }
    }
}
