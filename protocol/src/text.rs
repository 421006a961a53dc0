use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use bytestring::ByteString;

use crate::wire::STRING_BYTES_MAX;

/// Immutable text that shares the memory it was cut from.
///
/// A `Str` out of a request keeps that whole frame alive. What outlives the request should be
/// stored as [`Str::detached`].
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Str(ByteString);

impl Str {
    pub const fn from_static(text: &'static str) -> Self {
        Str(ByteString::from_static(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A copy in memory of its own.
    pub fn detached(&self) -> Self {
        Str(ByteString::from(self.as_str()))
    }

    /// The same where a string on the wire can be so long, else its start. For words to people that quote a request: names
    /// in there may be as long as a string can be, and the words around them would make the answer unwritable.
    pub fn shortened(self) -> Self {
        let text = self.as_str();
        if text.len() <= STRING_BYTES_MAX {
            return self;
        }
        const END: &str = "...";
        let start = text.floor_char_boundary(STRING_BYTES_MAX - END.len());
        Str::from(format!("{}{END}", &text[..start]))
    }

    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }
}

impl Deref for Str {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Str {
    fn borrow(&self) -> &str {
        self
    }
}

impl AsRef<str> for Str {
    fn as_ref(&self) -> &str {
        self
    }
}

impl From<&str> for Str {
    /// Copies. For literals see [`Str::from_static`].
    fn from(text: &str) -> Self {
        Str(ByteString::from(text))
    }
}

impl From<String> for Str {
    fn from(text: String) -> Self {
        Str(ByteString::from(text))
    }
}

impl From<&String> for Str {
    fn from(text: &String) -> Self {
        Str::from(text.as_str())
    }
}

impl From<Str> for String {
    fn from(text: Str) -> Self {
        text.as_str().to_owned()
    }
}

impl TryFrom<Bytes> for Str {
    /// The bytes again, which are not UTF-8.
    type Error = Bytes;

    fn try_from(bytes: Bytes) -> Result<Self, Bytes> {
        if std::str::from_utf8(&bytes).is_err() {
            return Err(bytes);
        }
        ByteString::try_from(bytes)
            .map(Str)
            .map_err(|_| Bytes::new())
    }
}

impl PartialEq<str> for Str {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Str {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for Str {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<Str> for str {
    fn eq(&self, other: &Str) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<Str> for &str {
    fn eq(&self, other: &Str) -> bool {
        *self == other.as_str()
    }
}

impl fmt::Debug for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Str {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_too_long_for_the_wire_are_cut_between_letters() {
        let fits = "ä".repeat(STRING_BYTES_MAX / 2);
        assert_eq!(Str::from(fits.as_str()).shortened().as_str(), fits);
        let cut = Str::from(format!("{fits}ää")).shortened();
        assert!(cut.len() <= STRING_BYTES_MAX && cut.ends_with("ä..."));
    }
}
