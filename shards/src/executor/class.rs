/// The class of a task says how much of a core it may take while others want it too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskClass {
    /// Connections: reading requests, writing answers.
    Network = 0,
    /// Taking records in.
    Produce = 1,
    /// Handing records out.
    Fetch = 2,
    /// Following other nodes.
    Replication = 3,
    /// Recovery, compaction, house-keeping: must never show in anybody's latency.
    Background = 4,
}

/// How many classes there are.
pub(crate) const CLASSES: usize = 5;

impl TaskClass {
    /// Share of the core while every class is busy. A class alone gets everything.
    pub(crate) const fn share(self) -> u64 {
        match self {
            Self::Network => 8,
            Self::Produce => 8,
            Self::Fetch => 6,
            Self::Replication => 6,
            Self::Background => 1,
        }
    }

    /// All of them, in order.
    pub const ALL: [Self; CLASSES] = [
        Self::Network,
        Self::Produce,
        Self::Fetch,
        Self::Replication,
        Self::Background,
    ];
}
