//! Calls from one core to another and back, through the broker's own mailboxes.

use std::rc::Rc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use shards::mesh::{self, Mesh};
use shards::sync::Event;
use shards::{Core, CoreId, CoreMain, Runtime, RuntimeOptions, TaskClass};

/// Slots of a mailbox, as in the broker.
const LANE_CAPACITY: usize = 1024;

/// Time for so many calls, `depth` of them at a time.
pub fn time(depth: u64, count: u64) -> Result<Duration> {
    let runtime = Runtime::new(RuntimeOptions {
        cores: 2,
        ..RuntimeOptions::default()
    })
    .map_err(|error| anyhow!("{error}"))?;
    let (sender, receiver) = mpsc::channel();
    let mains = mesh::endpoints::<Event>(&runtime, LANE_CAPACITY)
        .into_iter()
        .map(|endpoint| {
            let sender = sender.clone();
            let main: CoreMain = Box::new(move |core: Core| {
                let mesh = endpoint.attach(&core);
                Box::pin(async move {
                    let ended = Rc::new(Event::new());
                    let end = ended.wait();
                    mesh.serve(ended);
                    if core.id() == CoreId(0) {
                        let took = calls(&mesh, depth, count).await;
                        // Nobody is left to hear it where the receiver is gone.
                        let _ = sender.send(took);
                        mesh.call(CoreId(1), TaskClass::Background, |ended: &Rc<Event>| {
                            ended.notify_all();
                            async {}
                        })
                        .await;
                    } else {
                        end.await;
                    }
                })
            });
            main
        })
        .collect();
    runtime.run(mains).map_err(|error| anyhow!("{error}"))?;
    receiver.recv().context("the core ended without a figure")
}

async fn calls(mesh: &Mesh<Event>, depth: u64, count: u64) -> Duration {
    let begin = Instant::now();
    let mut waiting = std::collections::VecDeque::new();
    for number in 0..count {
        if waiting.len() as u64 == depth
            && let Some(oldest) = waiting.pop_front()
        {
            let _: u64 = Box::into_pin(oldest).await;
        }
        let call: Box<dyn Future<Output = u64>> = Box::new(mesh.call(
            CoreId(1),
            TaskClass::Produce,
            move |_: &Rc<Event>| async move { number },
        ));
        waiting.push_back(call);
    }
    for call in waiting {
        Box::into_pin(call).await;
    }
    begin.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_timed() {
        assert!(time(1, 100).expect("a figure") > Duration::ZERO);
        assert!(time(32, 1000).expect("a figure") > Duration::ZERO);
    }
}
