//! Consumers that choose their partitions themselves: on to the end, and at times back to what they have
//! read before.

use std::collections::BTreeMap;
use std::time::Duration;

use protocol::ErrorCode;
use protocol::messages::{
    ListOffsetsRequest, ListOffsetsRequestListOffsetsPartition, ListOffsetsRequestListOffsetsTopic,
};

use crate::client::{Client, Lost};
use crate::fetching::Fetcher;
use crate::record::Place;
use crate::stage::Phase;

pub async fn run(client: Client) {
    let places = client.stage.places();
    let mut positions: BTreeMap<Place, i64> = places.iter().map(|place| (*place, 0)).collect();
    let mut aside: Option<(Place, i64)> = None;
    let mut fetcher = Fetcher::new(&client, client.chance(80));
    loop {
        let calm = client.stage.phase.get() == Phase::Calm;
        if !calm {
            let place = places[client.below(places.len() as u64) as usize];
            match client.below(100) {
                0..10 => {
                    // To where it has been, or anywhere below.
                    let at = positions.get(&place).copied().unwrap_or(0);
                    let back = client.below(at.unsigned_abs() + 1).cast_signed();
                    positions.entry(place).and_modify(|at| *at = back);
                }
                10..20 if positions.len() > 1 && aside.is_none() => {
                    aside = positions.remove(&place).map(|at| (place, at));
                }
                20..25 => drop(fetcher.refresh(&client, place).await),
                25..30 => drop(look_at_end(&client, place).await),
                _ => {}
            }
        }
        if calm || client.chance(20) {
            positions.extend(aside.take());
        }
        let at_end = positions
            .iter()
            .all(|(place, at)| *at >= client.stage.model.known_end(*place));
        if calm && at_end && client.stage.producing.get() == 0 {
            break;
        }
        let max_wait = Duration::from_millis(client.below(400));
        if fetcher
            .fetch(&client, &mut positions, max_wait)
            .await
            .is_ok()
        {
            client.pause(120).await;
        }
    }
    client.stage.doing(&client.name, "");
}

/// Asks where a partition ends.
async fn look_at_end(client: &Client, place: Place) -> Result<(), Lost> {
    const LATEST: i64 = -1;
    let partition = ListOffsetsRequestListOffsetsPartition {
        partition_index: place.partition,
        timestamp: LATEST,
        ..Default::default()
    };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: [ListOffsetsRequestListOffsetsTopic {
            name: client.stage.topic_name(place.topic),
            partitions: [partition].into(),
        }]
        .into(),
        ..Default::default()
    };
    let expected = client.stage.model.expect(place);
    let answer = client.ask(7, &request).await?;
    let answer = &answer.topics[0].partitions[0];
    if ErrorCode::from_i16(answer.error_code) == Some(ErrorCode::None) {
        client.stage.model.saw_end(&expected, answer.offset);
    }
    Ok(())
}

/// Reads every partition from its start to its end, as somebody does who comes last.
pub async fn read_all(client: &Client) {
    let mut left: BTreeMap<Place, i64> = client
        .stage
        .places()
        .into_iter()
        .map(|place| (place, 0))
        .collect();
    let mut fetcher = Fetcher::new(client, false);
    while !left.is_empty() && !client.stage.model.is_violated() {
        // Lost connections are counted elsewhere.
        let _ = fetcher.fetch(client, &mut left, Duration::ZERO).await;
        left.retain(|place, at| *at < client.stage.model.known_end(*place));
    }
}
