//! Same-core synchronisation: no atomics, nothing here is `Send`. Between cores, use the mesh.

mod budget;
pub mod channel;
mod event;
pub mod oneshot;
#[cfg(test)]
mod tests;
mod waiters;

pub use budget::{ByteBudget, Grow, Permit, Reserve};
pub use event::{Event, Wait};
pub(crate) use waiters::Waiters;
