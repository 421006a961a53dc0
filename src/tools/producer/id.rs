//! The producer's id, and the sequences of its partitions (KIP-98, KIP-360).

use protocol::messages::InitProducerIdRequest;
use protocol::records::increment_sequence;

use crate::tools::client::{Client, ClientError, Node};

/// Id, epoch and the next sequence of each partition.
#[derive(Debug, Default)]
pub(super) struct ProducerId {
    current: Option<(i64, i16)>,
    next: Vec<i32>,
    /// A batch was given up: those behind it need sequences without a hole, so the epoch is raised before more is sent.
    pub(super) stale: bool,
}

impl ProducerId {
    pub(super) fn get(&self) -> Option<(i64, i16)> {
        self.current.filter(|_| !self.stale)
    }

    /// The sequence for the next batch of a partition.
    pub(super) fn take(&mut self, partition: usize, records: usize) -> i32 {
        if partition >= self.next.len() {
            self.next.resize(partition + 1, 0);
        }
        let sequence = self.next[partition];
        let records = i32::try_from(records).unwrap_or(i32::MAX);
        self.next[partition] = increment_sequence(sequence, records);
        sequence
    }

    /// Gets an id, or a higher epoch of it. All sequences begin at 0 then.
    pub(super) fn renew(&mut self, client: &mut Client) -> Result<(), ClientError> {
        let version = client
            .connection(Node::Any)?
            .version::<InitProducerIdRequest>()?;
        // Older brokers give a new id instead of a higher epoch.
        let (producer_id, producer_epoch) = match self.current {
            Some(known) if version >= 3 => known,
            _ => (-1, -1),
        };
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            producer_id,
            producer_epoch,
            ..InitProducerIdRequest::default()
        };
        let response = client.send(Node::Any, &request)?;
        if let Err(error) = ClientError::check(response.error_code, None) {
            // Next time from the start.
            self.current = None;
            return Err(error);
        }
        self.current = Some((response.producer_id, response.producer_epoch));
        self.next.clear();
        self.stale = false;
        Ok(())
    }
}
