//! Binding the configured listeners before anything else is started, so that a port in use stops
//! the start at once.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use protocol::ListenerKind;
use shards::Core;
use shards::io::BoundListener;

use super::ServeError;
use crate::config::{BrokerConfig, Endpoint};

/// How long a killed process may hold on to its sockets and locks.
pub const TEARDOWN: Duration = Duration::from_secs(3);
/// How often to look whether it still does.
pub const TEARDOWN_STEP: Duration = Duration::from_millis(20);
/// How often a port of the system's choice may turn out to be taken on another address.
const EPHEMERAL_TRIES: u32 = 10;

/// A bound listener, and what it is for.
pub struct Bound {
    /// The socket.
    pub socket: BoundListener,
    /// Index in the broker's or the controller's list of listeners.
    pub index: usize,
    /// For clients or for the quorum.
    pub kind: ListenerKind,
}

/// Binds every listener of the configuration, each of its addresses by `bind_address`. Where the port is 0 the system chooses one, and the
/// configuration says from then on which, also to those who are told.
///
/// # Errors
/// An address that cannot be bound, with the reason.
pub fn bind(
    config: &mut BrokerConfig,
    bind_address: impl Fn(SocketAddr) -> io::Result<BoundListener>,
) -> Result<Vec<Bound>, ServeError> {
    let mut bound = Vec::new();
    let kinds = [
        (
            ListenerKind::Broker,
            &mut config.listeners,
            &mut config.advertised_listeners,
        ),
        (
            ListenerKind::Controller,
            &mut config.controller_listeners,
            &mut config.advertised_controller_listeners,
        ),
    ];
    for (kind, endpoints, advertised) in kinds {
        for (index, endpoint) in endpoints.iter_mut().enumerate() {
            let sockets = bind_endpoint(endpoint, &bind_address).map_err(|source| {
                let endpoint = endpoint.to_string();
                ServeError::Listener { endpoint, source }
            })?;
            if let Some(socket) = sockets.first() {
                endpoint.port = socket.local_addr().port();
            }
            bound.extend(sockets.into_iter().map(|socket| Bound {
                socket,
                index,
                kind,
            }));
        }
        for told in advertised.iter_mut().filter(|told| told.port == 0) {
            let listener = endpoints.iter().find(|listener| listener.name == told.name);
            told.port = listener.map_or(0, |listener| listener.port);
        }
    }
    Ok(bound)
}

/// One socket for each address of a listener, all on one port.
///
/// # Errors
/// An address that cannot be bound.
pub fn bind_endpoint(
    endpoint: &Endpoint,
    bind_address: impl Fn(SocketAddr) -> io::Result<BoundListener>,
) -> io::Result<Vec<BoundListener>> {
    if endpoint.port != 0 {
        return bind_addresses(endpoint, bind_address);
    }
    // What the system chose for one address may be taken on the next.
    let mut tries = EPHEMERAL_TRIES;
    loop {
        let mut chosen = 0;
        let sockets = bind_addresses(endpoint, |mut address| {
            address.set_port(chosen);
            let socket = bind_address(address)?;
            chosen = socket.local_addr().port();
            Ok(socket)
        });
        match sockets {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries > 1 => tries -= 1,
            result => return result,
        }
    }
}

/// [`bind_endpoint`] on a core; like [`bind_patiently`] it tries again for a moment while the port is in use.
///
/// # Errors
/// An address that cannot be bound.
pub async fn bind_when_released(
    core: &Core,
    endpoint: &Endpoint,
) -> io::Result<Vec<BoundListener>> {
    let end = core.now() + TEARDOWN;
    loop {
        match bind_endpoint(endpoint, BoundListener::bind) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && core.now() < end => {
                core.sleep(TEARDOWN_STEP).await;
            }
            result => return result,
        }
    }
}

/// Binds every address that the machine has.
fn bind_addresses(
    endpoint: &Endpoint,
    mut bind: impl FnMut(SocketAddr) -> io::Result<BoundListener>,
) -> io::Result<Vec<BoundListener>> {
    let mut sockets = Vec::new();
    for address in endpoint.bind_addresses()? {
        match bind(address.address) {
            Ok(socket) => sockets.push(socket),
            Err(error) if !address.required && is_unsupported(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_is_one_port_on_all_addresses_and_told_as_such() {
        let listeners = "PLAINTEXT://localhost:0,OTHER://:0,CONTROLLER://localhost:0";
        let settings = [
            ("listeners", listeners),
            (
                "listener.security.protocol.map",
                "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            ),
        ];
        let mut config = BrokerConfig::single_node(&settings).unwrap();
        let bound = bind(&mut config, BoundListener::bind).unwrap();
        for (index, listener) in config.listeners.iter().enumerate() {
            let ports: Vec<u16> = bound
                .iter()
                .filter(|bound| bound.kind == ListenerKind::Broker && bound.index == index)
                .map(|bound| bound.socket.local_addr().port())
                .collect();
            assert!(!ports.is_empty());
            assert_ne!(listener.port, 0);
            assert!(ports.iter().all(|port| *port == listener.port), "{ports:?}");
            assert_eq!(config.advertised_listeners[index].port, listener.port);
        }
        assert_ne!(config.listeners[0].port, config.listeners[1].port);
        assert_ne!(config.controller_listeners[0].port, 0);
        assert_eq!(
            config.advertised_controller_listeners[0].port,
            config.controller_listeners[0].port
        );
    }
}
