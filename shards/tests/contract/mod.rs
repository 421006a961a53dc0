pub mod cold;
pub mod dirs;
pub mod files;
pub mod sockets;
pub mod tasks;
