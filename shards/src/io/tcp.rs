use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use rustix::net::{Shutdown, sockopt};

use super::listener::{inet, new_socket};
use super::{File, RecvBuf};
use crate::Core;
use crate::backend::Driver;
use crate::backend::epoll::EpollSocket;
use crate::backend::ring::RingSocket;
#[cfg(feature = "sim")]
use crate::sim::{SimEnd, SimSocket};
use crate::sync::{ByteBudget, Permit};

/// A TCP connection on its core. Clones are handles to the same connection; the last one closes
/// it. One task at a time may receive; sends of several tasks go out one after the other.
#[derive(Clone)]
pub struct TcpStream(Rc<StreamInner>);

struct StreamInner {
    core: Core,
    peer: SocketAddr,
    local: SocketAddr,
    backend: StreamBackend,
    /// Bytes that a dropped `recv_exact` had taken; they come before anything newer.
    put_back: RefCell<VecDeque<RecvBuf>>,
    /// One byte: the right to send.
    send_turn: ByteBudget,
    /// A send was dropped half-way, so what follows would be taken for its rest.
    torn: Cell<bool>,
    /// The last piece of a file took long to leave.
    takes_slowly: Cell<bool>,
}

enum StreamBackend {
    Ring(RingSocket),
    Epoll(EpollSocket),
    #[cfg(feature = "sim")]
    Sim(SimSocket),
}

impl StreamBackend {
    fn fd(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Ring(socket) => Ok(socket.fd()),
            Self::Epoll(socket) => Ok(socket.fd()),
            #[cfg(feature = "sim")]
            Self::Sim(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sets what every connection has, and gives its own address.
    fn prepare(&self) -> io::Result<SocketAddr> {
        #[cfg(feature = "sim")]
        if let Self::Sim(socket) = self {
            return Ok(socket.local_addr());
        }
        let fd = self.fd()?;
        sockopt::set_tcp_nodelay(fd, true)?;
        inet(rustix::net::getsockname(fd)?)
    }
}

impl TcpStream {
    pub(super) fn from_fd(core: &Core, fd: OwnedFd, peer: SocketAddr) -> io::Result<Self> {
        let backend = match core.driver() {
            Driver::Ring(driver) => StreamBackend::Ring(RingSocket::new(driver, fd)?),
            Driver::Epoll(driver) => StreamBackend::Epoll(EpollSocket::new(driver, fd)?),
            #[cfg(feature = "sim")]
            Driver::Sim(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        Self::new(core, backend, peer)
    }

    #[cfg(feature = "sim")]
    pub(super) fn from_sim(core: &Core, end: SimEnd, peer: SocketAddr) -> io::Result<Self> {
        let Driver::Sim(driver) = core.driver() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        Self::new(core, StreamBackend::Sim(SimSocket::new(driver, end)), peer)
    }

    fn new(core: &Core, backend: StreamBackend, peer: SocketAddr) -> io::Result<Self> {
        let local = backend.prepare()?;
        Ok(Self(Rc::new(StreamInner {
            core: core.clone(),
            peer,
            local,
            backend,
            put_back: RefCell::default(),
            send_turn: ByteBudget::new(1),
            torn: Cell::new(false),
            takes_slowly: Cell::new(false),
        })))
    }

    /// Connects to `address`. TCP_NODELAY is set.
    ///
    /// # Errors
    /// What connect(2) says.
    pub async fn connect(core: &Core, address: &SocketAddr) -> io::Result<TcpStream> {
        let backend = match core.driver() {
            Driver::Ring(driver) => {
                let socket = RingSocket::new(driver, new_socket(address)?)?;
                socket.connect(address).await?;
                StreamBackend::Ring(socket)
            }
            Driver::Epoll(driver) => {
                let socket = EpollSocket::new(driver, new_socket(address)?)?;
                socket.connect(address).await?;
                StreamBackend::Epoll(socket)
            }
            #[cfg(feature = "sim")]
            Driver::Sim(driver) => {
                StreamBackend::Sim(SimSocket::connect(core, driver, address).await?)
            }
        };
        Self::new(core, backend, *address)
    }

    /// Limits what the kernel holds of sent bytes that the peer has not acknowledged (SO_SNDBUF, socket(7); the kernel
    /// counts its own overhead in twice as much). Without it the kernel lets it grow with the connection.
    ///
    /// # Errors
    /// What setsockopt(2) says.
    pub fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        #[cfg(feature = "sim")]
        if let StreamBackend::Sim(_) = &self.0.backend {
            return Ok(());
        }
        Ok(sockopt::set_socket_send_buffer_size(
            self.0.backend.fd()?,
            bytes,
        )?)
    }

    pub fn peer_addr(&self) -> SocketAddr {
        self.0.peer
    }

    pub fn local_addr(&self) -> SocketAddr {
        self.0.local
    }

    /// Some bytes, in a buffer of the core's receive pool; empty at the end of the stream. While
    /// the connection is idle it holds no buffer. Dropping the future loses nothing.
    ///
    /// # Errors
    /// ECONNRESET and the like.
    pub async fn recv(&self) -> io::Result<RecvBuf> {
        let _leave = ForgetReader(self);
        poll_fn(|context| self.poll_recv(context)).await
    }

    fn poll_recv(&self, context: &mut Context<'_>) -> Poll<io::Result<RecvBuf>> {
        if let Some(buffer) = self.0.put_back.borrow_mut().pop_front() {
            return Poll::Ready(Ok(buffer));
        }
        match &self.0.backend {
            StreamBackend::Ring(socket) => socket.poll_recv(context),
            StreamBackend::Epoll(socket) => socket.poll_recv(context),
            #[cfg(feature = "sim")]
            StreamBackend::Sim(socket) => socket.poll_recv(context),
        }
    }

    /// Appends exactly `len` received bytes to `buf`, straight into its memory (reserve it
    /// before). When the future is dropped, what it had received is given to the next receive.
    ///
    /// # Errors
    /// `UnexpectedEof` when the stream ends before; ECONNRESET and the like.
    pub async fn recv_exact(&self, buf: BytesMut, len: usize) -> io::Result<BytesMut> {
        let mut taking = Taking {
            stream: self,
            start: buf.len(),
            buf,
            done: false,
        };
        taking.buf.reserve(len);
        let end = taking.start + len;
        taking.take_put_back(end);
        if taking.buf.len() < end {
            // What an earlier, dropped receive has left in flight comes first.
            if let Some(buffer) = self.settle().await? {
                self.0.put_back.borrow_mut().push_back(buffer);
                taking.take_put_back(end);
            }
        }
        while taking.buf.len() < end {
            let missing = end - taking.buf.len();
            let start = taking.start;
            let received = poll_fn(|context| match &self.0.backend {
                StreamBackend::Ring(socket) => {
                    socket.poll_recv_into(context, &mut taking.buf, start, missing)
                }
                StreamBackend::Epoll(socket) => {
                    socket.poll_recv_into(context, &mut taking.buf, missing)
                }
                #[cfg(feature = "sim")]
                StreamBackend::Sim(socket) => {
                    socket.poll_recv_into(context, &mut taking.buf, missing)
                }
            })
            .await?;
            if received == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(taking.finish())
    }

    async fn settle(&self) -> io::Result<Option<RecvBuf>> {
        let mut asked = false;
        poll_fn(|context| match &self.0.backend {
            StreamBackend::Ring(socket) => socket.poll_settle(context, &mut asked),
            StreamBackend::Epoll(_) => Poll::Ready(Ok(None)),
            #[cfg(feature = "sim")]
            StreamBackend::Sim(_) => Poll::Ready(Ok(None)),
        })
        .await
    }

    /// Sends all parts, in order. A send that is dropped before its end tears the stream: what
    /// goes out can no longer be told, so every later send fails.
    ///
    /// # Errors
    /// EPIPE, ECONNRESET and the like; `BrokenPipe` after a torn send.
    pub async fn send(&self, parts: Vec<Bytes>) -> io::Result<()> {
        let _turn = self.send_turn().await;
        let sending = Sending::begin(self)?;
        self.send_bytes(parts).await?;
        sending.finish();
        Ok(())
    }

    /// Waits for the sends before.
    pub(super) async fn send_turn(&self) -> Permit {
        self.0.send_turn.reserve(1).await
    }

    pub(super) fn core(&self) -> &Core {
        &self.0.core
    }

    pub(super) fn takes_slowly(&self) -> bool {
        self.0.takes_slowly.get()
    }

    pub(super) fn set_takes_slowly(&self, slowly: bool) {
        self.0.takes_slowly.set(slowly);
    }

    pub(super) async fn send_bytes(&self, parts: Vec<Bytes>) -> io::Result<()> {
        match &self.0.backend {
            StreamBackend::Ring(socket) => socket.send(parts).await,
            StreamBackend::Epoll(socket) => socket.send(parts).await,
            #[cfg(feature = "sim")]
            StreamBackend::Sim(socket) => socket.send(parts).await,
        }
    }

    /// One sendfile(2); may be short.
    pub(super) async fn send_file_once(
        &self,
        file: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        #[cfg(feature = "sim")]
        if let StreamBackend::Sim(socket) = &self.0.backend {
            let file = file.simulated().ok_or(io::ErrorKind::Unsupported)?;
            return socket.send_file(file, offset, len).await;
        }
        let file = file.os().ok_or(io::ErrorKind::Unsupported)?;
        let fd = file.buffered_now().ok_or(io::ErrorKind::NotFound)?;
        match &self.0.backend {
            StreamBackend::Ring(socket) => socket.send_file(fd, offset, len).await,
            StreamBackend::Epoll(socket) => socket.send_file(fd, offset, len).await,
            #[cfg(feature = "sim")]
            StreamBackend::Sim(_) => Err(io::ErrorKind::Unsupported.into()), // above
        }
    }

    /// Ends the sending side and the receiving side; those who wait see it.
    pub fn shutdown(&self) {
        #[cfg(feature = "sim")]
        if let StreamBackend::Sim(socket) = &self.0.backend {
            return socket.shutdown();
        }
        if let Ok(fd) = self.0.backend.fd() {
            let _ = rustix::net::shutdown(fd, Shutdown::Both);
        }
    }

    /// Ends the sending side only: the peer sees the end of the stream and may still answer.
    pub fn shutdown_write(&self) {
        #[cfg(feature = "sim")]
        if let StreamBackend::Sim(socket) = &self.0.backend {
            return socket.shutdown_write();
        }
        if let Ok(fd) = self.0.backend.fd() {
            let _ = rustix::net::shutdown(fd, Shutdown::Write);
        }
    }
}

/// Tells the backend that a receive has ended or was dropped.
struct ForgetReader<'a>(&'a TcpStream);

impl Drop for ForgetReader<'_> {
    fn drop(&mut self) {
        match &self.0.0.backend {
            StreamBackend::Ring(socket) => socket.forget_reader(),
            StreamBackend::Epoll(socket) => socket.forget_reader(),
            #[cfg(feature = "sim")]
            StreamBackend::Sim(socket) => socket.forget_reader(),
        }
    }
}

/// A `recv_exact` under way: what it has taken goes back when it is dropped.
struct Taking<'a> {
    stream: &'a TcpStream,
    start: usize,
    buf: BytesMut,
    done: bool,
}

impl Taking<'_> {
    /// Moves put-back bytes over, up to a length of `end`.
    fn take_put_back(&mut self, end: usize) {
        let mut put_back = self.stream.0.put_back.borrow_mut();
        while self.buf.len() < end
            && let Some(mut front) = put_back.pop_front()
        {
            let used = front.len().min(end - self.buf.len());
            self.buf.extend_from_slice(&front[..used]);
            front.advance(used);
            if !front.is_empty() {
                put_back.push_front(front);
            }
        }
    }

    fn finish(mut self) -> BytesMut {
        self.done = true;
        std::mem::take(&mut self.buf)
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        if let StreamBackend::Ring(socket) = &self.stream.0.backend {
            socket.forget_exact();
        }
        if self.buf.len() > self.start {
            let taken = self.buf.split_off(self.start).freeze();
            self.stream
                .0
                .put_back
                .borrow_mut()
                .push_front(RecvBuf::owned(taken));
        }
    }
}

/// A send under way: dropping it unfinished marks the stream as torn.
pub(super) struct Sending<'a>(&'a TcpStream);

impl<'a> Sending<'a> {
    pub(super) fn begin(stream: &'a TcpStream) -> io::Result<Self> {
        if stream.0.torn.get() {
            return Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "an earlier send on this connection was dropped half-way",
            ));
        }
        Ok(Self(stream))
    }

    pub(super) fn finish(self) {
        std::mem::forget(self);
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.0.torn.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::BoundListener;
    use crate::{BackendChoice, Runtime, RuntimeOptions};

    /// The size of the kernel's send buffer on the accepting side, before and after it was set.
    async fn sizes(core: Core, bytes: usize) -> (usize, usize) {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let bound = BoundListener::bind_on(&core, any).expect("bound");
        let listener = bound.attach(&core).expect("attached");
        let client = TcpStream::connect(&core, &listener.local_addr()).await;
        let accepted = listener.accept().await.expect("accepted");
        let stream = accepted.attach(&core).expect("attached");
        let size = || {
            let fd = stream.0.backend.fd().expect("a descriptor");
            sockopt::socket_send_buffer_size(fd).expect("a size")
        };
        let before = size();
        stream.set_send_buffer(bytes).expect("set");
        drop(client);
        (before, size())
    }

    #[test]
    fn a_send_buffer_is_as_large_as_it_was_set() {
        const BYTES: usize = 100 * 1024;
        for backend in [BackendChoice::Auto, BackendChoice::Epoll] {
            let options = RuntimeOptions {
                cores: 1,
                backend,
                propagate_panics: true,
                ..RuntimeOptions::default()
            };
            let runtime = Runtime::new(options).expect("a runtime");
            let main = |core: Core| {
                let main: std::pin::Pin<Box<dyn Future<Output = ()>>> = Box::pin(async move {
                    let (before, after) = sizes(core, BYTES).await;
                    assert_ne!(before, after);
                    assert_eq!(after, 2 * BYTES, "the kernel doubles it: socket(7)");
                });
                main
            };
            runtime.run(vec![Box::new(main)]).expect("it ran");
        }
    }
}
