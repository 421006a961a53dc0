//! A small blocking Kafka client for the tools. It speaks to any Kafka broker from 0.10 on, in the highest version that both
//! sides know.
//!
//! [`Client`] keeps one connection a node and finds out who leads and who coordinates. [`Connection`] can have many requests
//! under way: `start` them, then `finish` each.

mod connection;
mod error;
mod lookup;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Instant;

use protocol::messages::{DescribeClusterRequest, MetadataRequest, MetadataResponse};
use protocol::{Request, Str};

use crate::tools::waiting::waiting_for;

pub use connection::{Connection, Ticket};
pub use error::ClientError;
pub use lookup::Partition;
pub use settings::{Address, Settings, Target, read_properties};

/// Pauses between tries grow up to this many times the first.
const BACKOFF_GROWTH_MAX: u32 = 10;

/// Which node a request goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// Whichever answered first of the addresses that the tool was given.
    Any,
    /// The node with this id.
    Id(i32),
    /// The active controller, or the broker that passes requests on to it.
    Controller,
}

/// A node as the cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    pub id: i32,
    pub address: Address,
    pub rack: Option<Str>,
    /// Registered, but not serving.
    pub fenced: bool,
}

/// The nodes, as the last answer of the cluster had them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cluster {
    pub id: Option<Str>,
    pub controller: Option<i32>,
    pub nodes: BTreeMap<i32, NodeInfo>,
}

/// Connections to a cluster.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    connections: BTreeMap<Node, Connection>,
    cluster: Cluster,
}

impl Client {
    /// Connects to the first of the given addresses that answers.
    ///
    /// # Errors
    /// None of them does.
    pub fn connect(settings: Settings) -> Result<Client, ClientError> {
        let mut client = Client {
            settings,
            connections: BTreeMap::new(),
            cluster: Cluster::default(),
        };
        client.connection(Node::Any)?;
        Ok(client)
    }

    /// What it was told.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The nodes, without asking again: empty before the first `refresh`.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The connection to a node, opened when first needed.
    ///
    /// # Errors
    /// The node is not known or does not answer.
    pub fn connection(&mut self, node: Node) -> Result<&mut Connection, ClientError> {
        let node = self.resolve(node)?;
        if !self.connections.contains_key(&node) {
            let opened = match node {
                Node::Id(id) => self.open(id)?,
                _ => self.open_any()?,
            };
            self.connections.insert(node, opened);
        }
        self.connections
            .get_mut(&node)
            .ok_or(ClientError::NoController)
    }

    /// The connection to a node, if it is open.
    pub fn known_connection(&self, node: Node) -> Option<&Connection> {
        self.connections.get(&node)
    }

    /// Closes the connection to a node; the next request opens another.
    pub fn forget(&mut self, node: Node) {
        self.connections.remove(&node);
    }

    /// Asks a node, and waits for the answer. A connection that broke is opened anew by the next call.
    ///
    /// # Errors
    /// The node is not known, does not answer, or speaks no common version.
    pub fn send<R: Request>(
        &mut self,
        node: Node,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        let answer = self
            .connection(node)
            .and_then(|connection| connection.send(request));
        self.noticing(node, answer)
    }

    /// Like `send`, in no higher version than this.
    ///
    /// # Errors
    /// As `send`.
    pub fn send_up_to<R: Request>(
        &mut self,
        node: Node,
        max: i16,
        request: &R,
    ) -> Result<R::Response, ClientError> {
        let answer = self.connection(node).and_then(|connection| {
            let version = connection.version_within::<R>(R::VERSIONS.min, max)?;
            let ticket = connection.start_as(request, version)?;
            connection.finish(ticket)
        });
        self.noticing(node, answer)
    }

    /// Forgets the connection that an answer shows to be of no more use.
    pub fn noticing<T>(
        &mut self,
        node: Node,
        answer: Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        if let Err(
            ClientError::Broken { .. }
            | ClientError::Silent { .. }
            | ClientError::Unreadable { .. },
        ) = &answer
            && let Ok(node) = self.resolve(node)
        {
            self.connections.remove(&node);
        }
        answer
    }

    /// Tries again what passes: a leader that moved, a coordinator that loads, a connection that broke. After the time of
    /// `default.api.timeout.ms` the last error stands.
    ///
    /// # Errors
    /// What does not pass, or not in time.
    pub fn retrying<T>(
        &mut self,
        mut call: impl FnMut(&mut Client) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let deadline = Instant::now() + self.settings.api_timeout;
        let mut tries = 0;
        let mut waiting = None;
        loop {
            let error = match call(self) {
                Err(error) if error.is_passing() => error,
                done => return done,
            };
            let what = || format!("trying again: {error}");
            waiting
                .get_or_insert_with(|| waiting_for(what))
                .now_for(what);
            let pause = self.settings.retry_backoff * (1 << tries).min(BACKOFF_GROWTH_MAX);
            tries = (tries + 1).min(8);
            if Instant::now() + pause >= deadline {
                return Err(error);
            }
            std::thread::sleep(pause);
            // Where nobody answers at all, that is what to say.
            self.refresh()?;
        }
    }

    /// Learns the nodes anew.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn refresh(&mut self) -> Result<(), ClientError> {
        match self.settings.target {
            Target::Brokers => {
                self.metadata(Some(&[]))?;
            }
            Target::Controllers => self.describe_controllers()?,
        }
        Ok(())
    }

    /// The nodes, asked for when they are not known yet.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn nodes(&mut self) -> Result<Vec<NodeInfo>, ClientError> {
        if self.cluster.nodes.is_empty() {
            self.refresh()?;
        }
        Ok(self.cluster.nodes.values().cloned().collect())
    }

    /// Metadata of these topics, of all with `None`; never creates one.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn metadata(&mut self, topics: Option<&[Str]>) -> Result<MetadataResponse, ClientError> {
        let request = MetadataRequest {
            topics: topics.map(|names| names.iter().map(lookup::metadata_topic).collect()),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        self.send_metadata(&request)
    }

    /// Asks for metadata as the request says, e.g. by topic id, and keeps the nodes of the answer.
    ///
    /// # Errors
    /// Nobody answers.
    pub fn send_metadata(
        &mut self,
        request: &MetadataRequest,
    ) -> Result<MetadataResponse, ClientError> {
        let response = self.ask_anyone(request)?;
        self.cluster = Cluster {
            id: response.cluster_id.clone(),
            controller: (response.controller_id >= 0).then_some(response.controller_id),
            nodes: lookup::nodes_of(&response),
        };
        self.forget_gone();
        Ok(response)
    }

    /// `send` to any node, once more over a new connection if the old one had gone.
    fn ask_anyone<R: Request>(&mut self, request: &R) -> Result<R::Response, ClientError> {
        match self.send(Node::Any, request) {
            Err(ClientError::Broken { .. }) => self.send(Node::Any, request),
            answer => answer,
        }
    }

    fn describe_controllers(&mut self) -> Result<(), ClientError> {
        let request = DescribeClusterRequest {
            endpoint_type: 2,
            ..DescribeClusterRequest::default()
        };
        let response = self.ask_anyone(&request)?;
        ClientError::check(response.error_code, response.error_message.as_ref())?;
        self.cluster = lookup::cluster_of(response);
        self.forget_gone();
        Ok(())
    }

    /// Connections to nodes that are gone or live elsewhere now are not used again.
    fn forget_gone(&mut self) {
        let nodes = &self.cluster.nodes;
        self.connections.retain(|node, connection| match node {
            Node::Id(id) => nodes
                .get(id)
                .is_some_and(|node| node.address.to_string() == connection.address()),
            _ => true,
        });
    }

    fn resolve(&mut self, node: Node) -> Result<Node, ClientError> {
        let Node::Controller = node else {
            return Ok(node);
        };
        if self.cluster.controller.is_none() {
            self.refresh()?;
        }
        self.cluster
            .controller
            .map(Node::Id)
            .ok_or(ClientError::NoController)
    }

    fn open(&mut self, id: i32) -> Result<Connection, ClientError> {
        if !self.cluster.nodes.contains_key(&id) {
            self.refresh()?;
        }
        let node = self.cluster.nodes.get(&id);
        let node = node.ok_or(ClientError::UnknownNode(id))?;
        Connection::open(&node.address, &self.settings).map_err(|error| match error {
            ClientError::Broken { address, error } => {
                ClientError::NodeUnreachable { id, address, error }
            }
            other => other,
        })
    }

    fn open_any(&mut self) -> Result<Connection, ClientError> {
        let mut tried = Vec::new();
        for address in &self.settings.bootstrap {
            match Connection::open(address, &self.settings) {
                Ok(connection) => return Ok(connection),
                Err(ClientError::Broken { address, error }) => {
                    tried.push(format!("{address} ({error})"));
                }
                Err(error @ ClientError::Silent { .. }) => tried.push(error.to_string()),
                Err(other) => return Err(other),
            }
        }
        Err(ClientError::NobodyAnswers {
            who: self.settings.target.who(),
            flag: self.settings.target.flag(),
            tried: tried.join(", "),
        })
    }
}
