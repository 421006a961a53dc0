//! Answers as lists of slices: memory, or a range of a file that goes out by `sendfile(2)`.
//! Record bytes are never copied to be framed.

use shards::sync::Permit;

/// A slice of an answer.
pub use shards::io::SendPart as Part;

/// One whole answer as a frame: length, header and body.
#[derive(Default)]
pub struct Outgoing {
    parts: Vec<Part>,
    /// The memory that the parts refer to, given back when they have left.
    permit: Option<Permit>,
}

impl Outgoing {
    /// An answer of these parts.
    pub fn new(parts: Vec<Part>) -> Self {
        Outgoing {
            parts,
            permit: None,
        }
    }

    /// Keeps a reservation until the answer has left.
    pub fn holding(mut self, permit: Option<Permit>) -> Self {
        self.permit = permit;
        self
    }

    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        self.parts.iter().map(Part::len).sum()
    }

    /// The slices, in order.
    pub fn into_parts(self) -> (Vec<Part>, Option<Permit>) {
        (self.parts, self.permit)
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }
}

/// What a request came to.
pub enum Answer {
    /// Send this.
    Send(Outgoing),
    /// The request asks for no answer (Produce with acks=0).
    Nothing,
    /// Close the connection once the answers before this one have left.
    Close,
}

impl Answer {
    /// Bytes on the wire.
    pub fn len(&self) -> usize {
        match self {
            Answer::Send(outgoing) => outgoing.len(),
            Answer::Nothing | Answer::Close => 0,
        }
    }

    /// Whether nothing would be sent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What an answer may still grow by while it is put together.
///
/// A request can name the same large thing thousands of times in a few bytes each. Its answer ends
/// up no larger than a request may be; what finds no room in it is answered with an error.
pub struct AnswerRoom {
    left: usize,
}

impl AnswerRoom {
    /// Why something is not in the answer.
    pub const FULL: &str = "the answer would become too large; ask for less at a time";

    /// Room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        AnswerRoom { left: bytes }
    }

    /// Whether anything more may go in.
    pub fn is_left(&self) -> bool {
        self.left > 0
    }

    /// Something of that size went in.
    pub fn take(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}
