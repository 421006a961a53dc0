//! UnregisterBroker: the cluster forgets a broker that will not come back.

use protocol::ErrorCode;
use protocol::stored::{MetadataRecord, UnregisterBrokerRecord};

use super::leadership;
use super::machine::{Decided, Machine, Reply};

pub(super) fn decide(machine: &Machine, id: i32) -> Decided {
    let image = machine.latest();
    let Some(broker) = image.broker(id) else {
        let text = format!("Broker ID {id} is not currently registered");
        let refused = (ErrorCode::BrokerIdNotRegistered, text.into());
        return Decided::reply(Reply::UnregisterBroker(Err(refused)));
    };
    let mut decided = Decided::reply(Reply::UnregisterBroker(Ok(())));
    decided.records = leadership::give_up(image, id);
    decided
        .records
        .push(MetadataRecord::from(UnregisterBrokerRecord {
            broker_id: id,
            broker_epoch: broker.epoch,
        }));
    decided
}
