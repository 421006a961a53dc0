//! Sockets: listeners, connections, frames. What a request means is decided in `handlers`.

mod connection;
mod frame_reader;
mod idle;
mod listener;
mod outbox;
mod sender;

pub use idle::close_idle;
pub use listener::accept;
