//! Binding the configured listeners before anything else is started, so that a port in use stops
//! the start at once.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use protocol::ListenerKind;
use shards::io::BoundListener;

use super::ServeError;
use crate::config::{BrokerConfig, Endpoint};

/// How long a killed process may hold on to its sockets and locks.
pub const TEARDOWN: Duration = Duration::from_secs(3);
/// How often to look whether it still does.
pub const TEARDOWN_STEP: Duration = Duration::from_millis(20);

/// A bound listener, and what it is for.
pub struct Bound {
    /// The socket.
    pub socket: BoundListener,
    /// Index in the broker's or the controller's list of listeners.
    pub index: usize,
    /// For clients or for the quorum.
    pub kind: ListenerKind,
}

/// Binds every listener of the configuration, each of its addresses by `bind_address`.
///
/// # Errors
/// An address that cannot be bound, with the reason.
pub fn bind(
    config: &BrokerConfig,
    bind_address: impl Fn(SocketAddr) -> io::Result<BoundListener>,
) -> Result<Vec<Bound>, ServeError> {
    let mut bound = Vec::new();
    let brokers = config.listeners.iter().enumerate();
    let controllers = config.controller_listeners.iter().enumerate();
    let all = brokers
        .map(|(index, endpoint)| (ListenerKind::Broker, index, endpoint))
        .chain(controllers.map(|(index, endpoint)| (ListenerKind::Controller, index, endpoint)));
    for (kind, index, endpoint) in all {
        let sockets = bind_endpoint(endpoint, &bind_address)?;
        bound.extend(sockets.into_iter().map(|socket| Bound {
            socket,
            index,
            kind,
        }));
    }
    Ok(bound)
}

fn bind_endpoint(
    endpoint: &Endpoint,
    bind_address: impl Fn(SocketAddr) -> io::Result<BoundListener>,
) -> Result<Vec<BoundListener>, ServeError> {
    let problem = |source| ServeError::Listener {
        endpoint: endpoint.to_string(),
        source,
    };
    let mut bound = Vec::new();
    for address in endpoint.bind_addresses().map_err(problem)? {
        match bind_address(address.address) {
            Ok(socket) => bound.push(socket),
            Err(error) if !address.required && is_unsupported(&error) => {}
            Err(error) => return Err(problem(error)),
        }
    }
    Ok(bound)
}

/// Binds, and while the port is in use tries again for a moment: the kernel takes down the rings of
/// a killed process, and with them its listening sockets, some time after the process is gone.
///
/// # Errors
/// As for [`BoundListener::bind`].
#[expect(
    clippy::disallowed_methods,
    reason = "no core runs yet that could await a timer"
)]
pub fn bind_patiently(address: SocketAddr) -> io::Result<BoundListener> {
    let mut left = TEARDOWN;
    loop {
        match BoundListener::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && !left.is_zero() => {
                std::thread::sleep(TEARDOWN_STEP);
                left = left.saturating_sub(TEARDOWN_STEP);
            }
            result => return result,
        }
    }
}

/// The machine does not have this kind of address.
fn is_unsupported(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}
