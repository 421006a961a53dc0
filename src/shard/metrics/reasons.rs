//! Numbers that are told apart by a reason: who waits, what was dropped, what was refused.

use std::cell::Cell;

use super::Counter;

macro_rules! reasons {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $label:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// Its label.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $label,)* }
            }
        }
    };
}

reasons! {
    /// What holds somebody up without keeping the core busy.
    Park {
        /// A fetch waits for records.
        FetchRecords "fetch_waits_for_records",
        /// A member waits for the others of its group.
        Group "group_waits_for_members",
        /// A request waits until the earlier ones of its connection are answered.
        Order "request_waits_for_earlier",
        /// A connection is not read, because its client does not take its answers.
        Answers "client_takes_no_answers",
        /// Accepting waits for `max.connections`.
        Connections "accept_waits_for_max_connections",
    }
}

reasons! {
    /// What was given up to protect the rest.
    Drop {
        /// A request that stopped half way while others waited for memory.
        StalledRequest "stalled_request",
        /// An answer whose connection had ended.
        LostAnswer "answer_to_closed_connection",
        /// A line of the log, of which there were too many alike.
        LogLine "log_line",
    }
}

reasons! {
    /// Why a frame was no request that the broker answers.
    BadRequest {
        /// Its length is negative or above `socket.request.max.bytes`.
        Length "length",
        /// The connection ended inside it.
        Truncated "truncated",
        /// Its header does not decode, or names no API.
        Header "header",
        /// An API that is not served on this listener.
        Api "api",
        /// A version that is not served.
        Version "version",
        /// Its body does not decode.
        Body "body",
    }
}

/// A counter for each reason.
pub struct ByReason<const N: usize>([Counter; N]);

impl<const N: usize> Default for ByReason<N> {
    fn default() -> Self {
        ByReason(std::array::from_fn(|_| Counter::default()))
    }
}

impl<const N: usize> ByReason<N> {
    /// Counts for the reason with this number.
    pub(super) fn add(&self, reason: usize, count: u64) {
        self.0[reason].add(count);
    }

    /// The counts, in order.
    pub(super) fn all(&self) -> [u64; N] {
        std::array::from_fn(|reason| self.0[reason].get())
    }
}

/// Who waits now, and how often somebody did.
#[derive(Default)]
pub struct Parks {
    now: [Cell<u64>; Park::ALL.len()],
    total: ByReason<{ Park::ALL.len() }>,
}

/// Somebody waits, until this is dropped.
pub struct Parked<'a>(&'a Cell<u64>);

impl Parks {
    /// Somebody begins to wait.
    pub fn enter(&self, why: Park) -> Parked<'_> {
        let now = &self.now[why as usize];
        now.set(now.get() + 1);
        self.total.add(why as usize, 1);
        Parked(now)
    }

    /// Who waits now, in the order of [`Park::ALL`].
    pub(super) fn now(&self) -> [u64; Park::ALL.len()] {
        std::array::from_fn(|why| self.now[why].get())
    }

    /// How often somebody did.
    pub(super) fn total(&self) -> [u64; Park::ALL.len()] {
        self.total.all()
    }
}

impl std::ops::Drop for Parked<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_counted_until_it_ends() {
        let parks = Parks::default();
        let first = parks.enter(Park::Group);
        let second = parks.enter(Park::Group);
        drop(first);
        assert_eq!(parks.now()[Park::Group as usize], 1);
        drop(second);
        assert_eq!(parks.now()[Park::Group as usize], 0);
        assert_eq!(parks.total()[Park::Group as usize], 2);
        assert_eq!(parks.total()[Park::Order as usize], 0);
    }
}
