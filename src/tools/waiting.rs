//! What a tool waits for, told to a person at a terminal who begins to wonder: an address that does not answer, a request
//! that takes long, tries that fail one after the other.

use std::io::{IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::progress::clear_line;

/// What takes less is nothing to speak of.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the line is written anew.
const INTERVAL: Duration = Duration::from_millis(500);

/// All that is waited for now; calls inside of each other have one each.
#[derive(Default)]
struct Board {
    notes: Vec<Note>,
    next: u64,
    shown: bool,
}

struct Note {
    number: u64,
    since: Instant,
    what: String,
}

/// None where standard error is no terminal.
static BOARD: OnceLock<Option<Mutex<Board>>> = OnceLock::new();

/// Keeps a note on the board until it is dropped.
pub(super) struct Waiting(Option<u64>);

/// Says from now on what is waited for, once it takes long.
pub(super) fn waiting_for(what: impl FnOnce() -> String) -> Waiting {
    let Some(mut board) = board() else {
        return Waiting(None);
    };
    let number = board.next;
    board.next += 1;
    board.notes.push(Note {
        number,
        since: Instant::now(),
        what: what(),
    });
    Waiting(Some(number))
}

impl Waiting {
    /// It is something else by now; the time goes on.
    pub(super) fn now_for(&self, what: impl FnOnce() -> String) {
        if let (Some(number), Some(mut board)) = (self.0, board())
            && let Some(note) = board.notes.iter_mut().find(|note| note.number == number)
        {
            note.what = what();
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let (Some(number), Some(mut board)) = (self.0, board()) {
            board.notes.retain(|note| note.number != number);
            board.clear();
        }
    }
}

fn board() -> Option<MutexGuard<'static, Board>> {
    let board = BOARD.get_or_init(|| {
        let wanted = std::io::stderr().is_terminal();
        let writer = std::thread::Builder::new().name("waiting".to_owned());
        // It ends with the process. Without it nothing is told, which is no reason to fail.
        let started = wanted && writer.spawn(write_on_and_on).is_ok();
        started.then(Mutex::default)
    });
    let board = board.as_ref()?;
    Some(board.lock().unwrap_or_else(PoisonError::into_inner))
}

fn write_on_and_on() {
    loop {
        std::thread::sleep(INTERVAL);
        let Some(mut board) = board() else { return };
        match board.text(Instant::now()) {
            Some(text) => {
                board.shown = true;
                // A terminal that is gone needs no notes.
                let _ = write!(std::io::stderr(), "\r{text}\x1b[K");
            }
            None => board.clear(),
        }
    }
}

impl Board {
    /// The innermost of those that are old enough.
    fn text(&self, now: Instant) -> Option<String> {
        let age = |note: &Note| now.saturating_duration_since(note.since);
        let mut notes = self.notes.iter().rev();
        let note = notes.find(|note| age(note) >= PATIENCE)?;
        Some(format!("{}, {} s so far", note.what, age(note).as_secs()))
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            clear_line();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_note_that_is_old_enough_is_told() {
        let start = Instant::now();
        let note = |number, after: u64, what: &str| Note {
            number,
            since: start + Duration::from_secs(after),
            what: what.to_owned(),
        };
        let board = Board {
            notes: vec![note(0, 0, "trying again"), note(1, 3, "connecting")],
            ..Board::default()
        };
        let told = |seconds| board.text(start + Duration::from_secs(seconds));
        assert_eq!(told(1), None);
        assert_eq!(told(4).as_deref(), Some("trying again, 4 s so far"));
        assert_eq!(told(6).as_deref(), Some("connecting, 3 s so far"));
    }
}
