#[cfg(feature = "sim")]
use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::net::{AddressFamily, SocketAddrAny, SocketFlags, SocketType, sockopt};

use super::TcpStream;
use crate::Core;
use crate::backend::Driver;
use crate::backend::epoll::Registration;
use crate::backend::ring::RingListener;
#[cfg(feature = "sim")]
use crate::sim::{OneThread, SimEnd, SimListener};

/// Connections that may wait to be accepted; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 1024;

/// A listening socket before it belongs to a core.
#[derive(Debug)]
pub struct BoundListener {
    handle: Handle<BoundHere>,
    address: SocketAddr,
}

/// A descriptor, or what stands for it in the simulation.
#[derive(Debug)]
enum Handle<Sim> {
    Os(OwnedFd),
    #[cfg_attr(not(feature = "sim"), allow(dead_code, reason = "cannot be made then"))]
    Sim(Sim),
}

#[cfg(feature = "sim")]
type BoundHere = OneThread<RefCell<Option<SimListener>>>;
#[cfg(feature = "sim")]
type AcceptedHere = OneThread<RefCell<Option<SimEnd>>>;
#[cfg(not(feature = "sim"))]
type BoundHere = std::convert::Infallible;
#[cfg(not(feature = "sim"))]
type AcceptedHere = std::convert::Infallible;

fn other_backend<T>() -> io::Result<T> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "made by another backend than the core's",
    ))
}

impl BoundListener {
    /// Binds and listens. With SO_REUSEADDR, so that a restart need not wait for old connections;
    /// without SO_REUSEPORT, so that a second process on the port fails. Port 0 picks a free one.
    ///
    /// # Errors
    /// What bind(2) says, with the address in the text.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::bind_now(address)
            .map_err(|error| io::Error::new(error.kind(), format!("listen on {address}: {error}")))
    }

    /// [`BoundListener::bind`] for whatever backend the core has: in the simulation, on its node.
    ///
    /// # Errors
    /// As [`BoundListener::bind`].
    pub fn bind_on(core: &Core, address: SocketAddr) -> io::Result<Self> {
        match core.driver() {
            Driver::Ring(_) | Driver::Epoll(_) => Self::bind(address),
            #[cfg(feature = "sim")]
            Driver::Sim(driver) => match driver.bind(address) {
                Ok(listener) => Ok(Self::simulated(listener)),
                Err(error) => Err(io::Error::new(
                    error.kind(),
                    format!("listen on {address}: {error}"),
                )),
            },
        }
    }

    #[cfg(feature = "sim")]
    pub(crate) fn simulated(listener: SimListener) -> Self {
        Self {
            address: listener.address(),
            handle: Handle::Sim(OneThread::new(RefCell::new(Some(listener)))),
        }
    }

    fn bind_now(address: SocketAddr) -> io::Result<Self> {
        let fd = new_socket(&address)?;
        sockopt::set_socket_reuseaddr(&fd, true)?;
        if address.is_ipv6() {
            // [::] must not take the IPv4 port too: listeners are bound one by one.
            sockopt::set_ipv6_v6only(&fd, true)?;
        }
        rustix::net::bind(&fd, &address)?;
        rustix::net::listen(&fd, BACKLOG)?;
        let address = inet(rustix::net::getsockname(&fd)?)?;
        let handle = Handle::Os(fd);
        Ok(Self { handle, address })
    }

    /// The address really bound, with the port that was picked.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Hands the listener to a core.
    ///
    /// # Errors
    /// When the core cannot watch one more descriptor.
    pub fn attach(self, core: &Core) -> io::Result<TcpListener> {
        let backend = match (core.driver(), self.handle) {
            (Driver::Ring(driver), Handle::Os(fd)) => {
                ListenerBackend::Ring(RingListener::new(driver, fd))
            }
            (Driver::Epoll(driver), Handle::Os(fd)) => {
                rustix::io::ioctl_fionbio(&fd, true)?;
                ListenerBackend::Epoll(Registration::new(driver, fd)?)
            }
            #[cfg(feature = "sim")]
            (Driver::Sim(_), Handle::Sim(listener)) => match listener.get().take() {
                Some(listener) => ListenerBackend::Sim(listener),
                None => return other_backend(),
            },
            _ => return other_backend(),
        };
        Ok(TcpListener(Rc::new(ListenerInner {
            address: self.address,
            backend,
        })))
    }
}

pub(super) fn new_socket(address: &SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(
        family,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

pub(crate) fn inet(address: SocketAddrAny) -> io::Result<SocketAddr> {
    address
        .try_into()
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not an internet address"))
}

/// A listening socket on its core. Closed when the last clone goes.
#[derive(Clone)]
pub struct TcpListener(Rc<ListenerInner>);

struct ListenerInner {
    address: SocketAddr,
    backend: ListenerBackend,
}

enum ListenerBackend {
    Ring(RingListener),
    Epoll(Registration),
    #[cfg(feature = "sim")]
    Sim(SimListener),
}

impl TcpListener {
    pub fn local_addr(&self) -> SocketAddr {
        self.0.address
    }

    /// The next connection. Dropping the future loses none. One task at a time may wait.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOBUFS, ENOMEM: too many descriptors or too little memory; wait a little
    /// before the next call. A connection that its client gave up is skipped.
    pub async fn accept(&self) -> io::Result<AcceptedSocket> {
        match &self.0.backend {
            ListenerBackend::Ring(listener) => {
                let (fd, peer) = listener.accept().await?;
                let handle = Handle::Os(fd);
                Ok(AcceptedSocket { handle, peer })
            }
            #[cfg(feature = "sim")]
            ListenerBackend::Sim(listener) => {
                let (end, peer) = listener.accept().await?;
                let handle = Handle::Sim(OneThread::new(RefCell::new(Some(end))));
                Ok(AcceptedSocket { handle, peer })
            }
            ListenerBackend::Epoll(registration) => loop {
                let accepted = poll_fn(|context| {
                    registration.poll_read(context, |fd| {
                        rustix::net::acceptfrom_with(fd, SocketFlags::CLOEXEC)
                    })
                })
                .await;
                match accepted {
                    Ok((fd, Some(peer))) => {
                        let handle = Handle::Os(fd);
                        let peer = inet(peer)?;
                        return Ok(AcceptedSocket { handle, peer });
                    }
                    Ok((_, None)) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                    Err(error) => return Err(error),
                }
            },
        }
    }
}

/// A connection that belongs to no core yet.
#[derive(Debug)]
pub struct AcceptedSocket {
    handle: Handle<AcceptedHere>,
    peer: SocketAddr,
}

impl AcceptedSocket {
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Hands the connection to a core.
    ///
    /// # Errors
    /// When the core cannot watch one more descriptor.
    pub fn attach(self, core: &Core) -> io::Result<TcpStream> {
        match self.handle {
            Handle::Os(fd) => TcpStream::from_fd(core, fd, self.peer),
            #[cfg(feature = "sim")]
            Handle::Sim(end) => match end.get().take() {
                Some(end) => TcpStream::from_sim(core, end, self.peer),
                None => other_backend(),
            },
            #[cfg(not(feature = "sim"))]
            Handle::Sim(never) => match never {},
        }
    }
}
