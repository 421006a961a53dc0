//! Free ports. They lie below the range from which the kernel takes ports for outgoing connections: a client that
//! knocks again and again at a port of that range, while the broker is away, can end up connected to itself.
use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);
const FIRST: u32 = 20_000;
const COUNT: u32 = 12_000;

/// A port of 127.0.0.1 that nobody holds now, and that this process did not hand out before.
pub fn free() -> u16 {
    let start = std::process::id().wrapping_mul(61);
    for _ in 0..COUNT {
        let step = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + step % COUNT).expect("below 32000");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}
