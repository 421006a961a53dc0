use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::rc::Rc;

use io_uring::opcode;
use io_uring::types::Fd;

use super::RingDriver;
use super::op::{LeftOver, OnDrop, Op};
use crate::io::inet;

/// A listening socket on the ring. One accept is in flight at a time and belongs to the listener,
/// not to the future that waits for it, so that a dropped future loses no connection.
pub(crate) struct RingListener {
    driver: Rc<RingDriver>,
    fd: Rc<OwnedFd>,
    accepting: RefCell<Option<Op<Rc<OwnedFd>>>>,
}

impl RingListener {
    pub(crate) fn new(driver: &Rc<RingDriver>, fd: OwnedFd) -> Self {
        Self {
            driver: Rc::clone(driver),
            fd: Rc::new(fd),
            accepting: RefCell::new(None),
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<(OwnedFd, SocketAddr)> {
        loop {
            let completion = poll_fn(|context| {
                let mut accepting = self.accepting.borrow_mut();
                let op = accepting.get_or_insert_with(|| self.start());
                op.poll_done(context).map(|(completion, _)| {
                    *accepting = None;
                    completion
                })
            })
            .await;
            match completion.errno() {
                libc::ECONNABORTED | libc::EINTR | libc::EAGAIN => continue,
                _ => {}
            }
            let raw = i32::try_from(completion.value()?).expect("descriptors fit in 31 bits");
            // SAFETY: a successful accept gives a new descriptor, and its result is taken once.
            let fd = unsafe { OwnedFd::from_raw_fd(raw) };
            match rustix::net::getpeername(&fd) {
                Ok(Some(peer)) => return Ok((fd, inet(peer)?)),
                // The peer has gone already.
                Ok(None) | Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::INVAL) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn start(&self) -> Op<Rc<OwnedFd>> {
        let held = Box::new(Rc::clone(&self.fd));
        Op::submit(
            &self.driver,
            held,
            LeftOver::Descriptor,
            OnDrop::Cancel,
            |fd| {
                opcode::Accept::new(Fd(fd.as_raw_fd()), ptr::null_mut(), ptr::null_mut())
                    .flags(libc::SOCK_CLOEXEC)
                    .build()
            },
        )
    }
}
