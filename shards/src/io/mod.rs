//! Files, directories and sockets with owned buffers.

mod aligned;
mod cold;
pub mod dir;
mod file;
mod growing;
mod join;
mod listener;
mod send_parts;
mod sendfile;
mod tcp;

pub use crate::backend::recv_pool::RecvBuf;
pub use aligned::{AlignedBuf, BLOCK};
pub use file::{Durability, File, OpenOptions};
pub use growing::GrowingBuf;
pub use listener::{AcceptedSocket, BoundListener, TcpListener};
pub use send_parts::SendPart;
pub use tcp::TcpStream;

pub(crate) use cold::ColdReads;
pub(crate) use file::{OsFile, ReadBuf};
pub(crate) use listener::inet;
