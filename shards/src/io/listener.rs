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

/// Connections that may wait to be accepted; the kernel caps it at net.core.somaxconn.
const BACKLOG: i32 = 1024;

/// A listening socket before it belongs to a core.
#[derive(Debug)]
pub struct BoundListener {
    fd: OwnedFd,
    address: SocketAddr,
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
        Ok(Self { fd, address })
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
        let backend = match core.driver() {
            Driver::Ring(driver) => ListenerBackend::Ring(RingListener::new(driver, self.fd)),
            Driver::Epoll(driver) => {
                rustix::io::ioctl_fionbio(&self.fd, true)?;
                ListenerBackend::Epoll(Registration::new(driver, self.fd)?)
            }
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
                Ok(AcceptedSocket { fd, peer })
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
                        return Ok(AcceptedSocket {
                            fd,
                            peer: inet(peer)?,
                        });
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
    fd: OwnedFd,
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
        TcpStream::from_fd(core, self.fd, self.peer)
    }
}
