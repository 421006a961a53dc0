//! Connections that mean harm, or are simply left alone.
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use crate::Until;
use crate::support::clock;
use crate::support::random::Random;

/// How many there were.
pub fn run(port: u16, until: Until) -> usize {
    let mut random = Random::new(7);
    let (mut count, mut left_alone) = (0, Vec::new());
    while until.goes_on() {
        for _ in 0..20 {
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
                continue;
            };
            count += 1;
            let bytes: &[u8] = match random.between(0, 7) {
                // Two thousand million bytes, as many below zero, and text.
                0 => &[0x7f, 0xff, 0xff, 0xff, 0, 3],
                1 => &[0x80, 0, 0, 0],
                2 => b"GET / HTTP/1.1\r\n\r\n",
                // Half a frame, an API that there is not, a count that cannot be.
                3 => &[0, 0, 0x40, 0, 0, 0, 0, 9, 0, 0],
                4 => &[0, 0, 0, 10, 0x03, 0xe7, 0, 0, 0, 0, 0, 1, 0xff, 0xff],
                5 => &[
                    0, 0, 0, 14, 0, 3, 0, 1, 0, 0, 0, 1, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff,
                ],
                _ => &[],
            };
            let _ = stream.write_all(bytes);
            if random.between(0, 3) == 0 {
                left_alone.push(stream);
            }
        }
        let surplus = left_alone.len().saturating_sub(200);
        left_alone.drain(..surplus);
        clock::pause(Duration::from_millis(200));
    }
    count
}
