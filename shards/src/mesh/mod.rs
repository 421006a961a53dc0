//! Calls between cores.
//!
//! Each ordered pair of cores has two bounded lanes: one for calls and posts, one for replies, so
//! that a burst of calls never holds up answers. A lane is FIFO. A message that finds its lane
//! full waits at the sender, in order, and is counted; nothing is lost and nobody blocks.
//! A receiver that sleeps is woken once per turn of the sender, not once per message.

mod lane;
mod lane_parts;
mod port;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use crate::core::Source;
use crate::executor::{CoreShared, TaskClass};
use crate::{Core, CoreId, Runtime};
use port::{Inbox, Outbox, Reply};

/// Runs on the receiving core, in the order of arrival.
type Request<S> = Box<dyn FnOnce(&Rc<S>, &Mesh<S>) + Send>;

/// The ends of all lanes that meet at one core, before that core has started.
pub struct Endpoint<S> {
    id: CoreId,
    /// By peer; `None` for the core itself.
    links: Vec<Option<Link<S>>>,
}

struct Link<S> {
    requests_out: Outbox<Request<S>>,
    requests_in: Inbox<Request<S>>,
    replies_out: Outbox<Reply>,
    replies_in: Inbox<Reply>,
}

/// One endpoint per core of `runtime`; each lane holds `lane_capacity` messages. `S` is the state
/// that calls on a core get to see, of the broker's shard for example; it need not be `Send`.
pub fn endpoints<S: 'static>(runtime: &Runtime, lane_capacity: usize) -> Vec<Endpoint<S>> {
    endpoints_of(runtime.shared(), lane_capacity)
}

pub(crate) fn endpoints_of<S: 'static>(
    cores: &[Arc<CoreShared>],
    capacity: usize,
) -> Vec<Endpoint<S>> {
    let mut endpoints: Vec<Endpoint<S>> = (0..cores.len())
        .map(|index| Endpoint {
            id: CoreId(u16::try_from(index).expect("core counts fit in 16 bits")),
            links: cores.iter().map(|_| None).collect(),
        })
        .collect();
    for a in 0..cores.len() {
        for b in a + 1..cores.len() {
            let (requests_ab, requests_at_b) = port::port(capacity, &cores[a], &cores[b]);
            let (requests_ba, requests_at_a) = port::port(capacity, &cores[b], &cores[a]);
            let (replies_ab, replies_at_b) = port::port(capacity, &cores[a], &cores[b]);
            let (replies_ba, replies_at_a) = port::port(capacity, &cores[b], &cores[a]);
            endpoints[a].links[b] = Some(Link {
                requests_out: requests_ab,
                requests_in: requests_at_a,
                replies_out: replies_ab,
                replies_in: replies_at_a,
            });
            endpoints[b].links[a] = Some(Link {
                requests_out: requests_ba,
                requests_in: requests_at_b,
                replies_out: replies_ba,
                replies_in: replies_at_b,
            });
        }
    }
    endpoints
}

impl<S: 'static> Endpoint<S> {
    /// Ties the endpoint to its core.
    ///
    /// # Panics
    /// When `core` is not the core that this endpoint was made for.
    pub fn attach(self, core: &Core) -> Mesh<S> {
        assert_eq!(self.id, core.id(), "an endpoint belongs to one core");
        let mesh = Mesh(Rc::new(MeshInner {
            core: core.clone(),
            links: self
                .links
                .into_iter()
                .map(|link| link.map(RefCell::new))
                .collect(),
            state: RefCell::new(None),
            early: RefCell::new(VecDeque::new()),
        }));
        core.add_source(Rc::new(mesh.clone()));
        mesh
    }
}

struct MeshInner<S> {
    core: Core,
    links: Vec<Option<RefCell<Link<S>>>>,
    state: RefCell<Option<Rc<S>>>,
    /// Requests from this core to itself that came before `serve`.
    early: RefCell<VecDeque<Request<S>>>,
}

/// This core's view of all cores.
pub struct Mesh<S>(Rc<MeshInner<S>>);

impl<S> Clone for Mesh<S> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// Requests taken from one lane per turn, so that one busy peer does not starve the others.
const REQUESTS_PER_TURN: usize = 128;

impl<S: 'static> Mesh<S> {
    pub fn core(&self) -> &Core {
        &self.0.core
    }

    /// Starts to run incoming calls with this state. Calls that came before wait in their lanes.
    pub fn serve(&self, state: Rc<S>) {
        *self.0.state.borrow_mut() = Some(Rc::clone(&state));
        let early = std::mem::take(&mut *self.0.early.borrow_mut());
        for request in early {
            request(&state, self);
        }
    }

    /// Stops running incoming calls, for an ordered shutdown; they wait from now on.
    pub fn stop_serving(&self) {
        let state = self.0.state.borrow_mut().take();
        drop(state);
    }

    /// Runs `f` on core `to` and its future there, as a task of `class`; the result comes back.
    ///
    /// Eager: the request is queued by this call, before the future is awaited, and requests from
    /// one core to another run `f` in the order in which they were queued. To this core itself,
    /// `f` runs at once. Dropping the returned future forgets the result; the work goes on.
    pub fn call<R, F, Fut>(
        &self,
        to: CoreId,
        class: TaskClass,
        f: F,
    ) -> impl Future<Output = R> + use<S, R, F, Fut>
    where
        R: Send + 'static,
        F: FnOnce(&Rc<S>) -> Fut + Send + 'static,
        Fut: Future<Output = R> + 'static,
    {
        let from = self.0.core.id();
        let answer = self.0.core.pending().ask::<R>();
        let key = answer.key();
        self.request(
            to,
            Box::new(move |state, mesh| {
                let work = f(state);
                let mesh = mesh.clone();
                let core = mesh.0.core.clone();
                core.spawn(class, "mesh call", async move {
                    let result = work.await;
                    mesh.reply(from, (key, Box::new(result)));
                });
            }),
        );
        answer
    }

    /// Like [`Mesh::call`], but nobody waits for the end.
    pub fn post<F, Fut>(&self, to: CoreId, class: TaskClass, f: F)
    where
        F: FnOnce(&Rc<S>) -> Fut + Send + 'static,
        Fut: Future<Output = ()> + 'static,
    {
        self.request(
            to,
            Box::new(move |state, mesh| {
                let work = f(state);
                mesh.0.core.spawn(class, "mesh post", work);
            }),
        );
    }

    fn request(&self, to: CoreId, request: Request<S>) {
        if to == self.0.core.id() {
            let state = self.0.state.borrow().clone();
            match state {
                Some(state) => request(&state, self),
                None => self.0.early.borrow_mut().push_back(request),
            }
            return;
        }
        let counters = self.0.core.counters();
        counters.mesh_sent.one();
        let mut link = self.link(to).borrow_mut();
        if link.requests_out.send(request) {
            counters.lane_overflow.one();
        }
    }

    fn reply(&self, to: CoreId, reply: Reply) {
        if to == self.0.core.id() {
            self.0.core.pending().answer(reply.0, reply.1);
            return;
        }
        let counters = self.0.core.counters();
        counters.mesh_sent.one();
        let mut link = self.link(to).borrow_mut();
        if link.replies_out.send(reply) {
            counters.lane_overflow.one();
        }
    }

    fn link(&self, to: CoreId) -> &RefCell<Link<S>> {
        self.0.links[to.index()]
            .as_ref()
            .expect("every other core has a link")
    }
}

impl<S: 'static> Source for Mesh<S> {
    fn take(&self) {
        let core = &self.0.core;
        let mut taken = 0;
        for link in self.0.links.iter().flatten() {
            taken += self.take_replies(link) + self.take_requests(link);
            link.borrow_mut().tell_room(core);
        }
        core.counters().mesh_received.add(taken);
    }

    fn has_arrived(&self) -> bool {
        let serving = self.0.state.borrow().is_some();
        self.0.links.iter().flatten().any(|link| {
            let mut link = link.borrow_mut();
            link.replies_in.len() > 0
                || (serving && link.requests_in.len() > 0)
                || link.requests_out.can_flush()
                || link.replies_out.can_flush()
        })
    }

    fn depths(&self) -> (usize, usize) {
        let links = self.0.links.iter().flatten();
        links.fold((0, 0), |(arrived, waiting), link| {
            let mut link = link.borrow_mut();
            let here = link.requests_in.len() + link.replies_in.len();
            let there = link.requests_out.waiting() + link.replies_out.waiting();
            (arrived + here, waiting + there)
        })
    }

    fn stop(&self) {
        // The state usually knows the mesh: without this, they would keep each other alive.
        self.stop_serving();
        let early = std::mem::take(&mut *self.0.early.borrow_mut());
        drop(early);
    }

    fn flush(&self) {
        let counters = self.0.core.counters();
        for link in self.0.links.iter().flatten() {
            let mut link = link.borrow_mut();
            let requests = link.requests_out.flush();
            let replies = link.replies_out.flush();
            if (requests || replies) && link.requests_out.wake_peer() {
                counters.wakeups_sent.one();
            }
        }
    }
}

impl<S: 'static> Mesh<S> {
    fn take_replies(&self, link: &RefCell<Link<S>>) -> u64 {
        let mut taken = 0;
        loop {
            let reply = link.borrow_mut().replies_in.take();
            let Some((key, value)) = reply else {
                return taken;
            };
            self.0.core.pending().answer(key, value);
            taken += 1;
        }
    }

    fn take_requests(&self, link: &RefCell<Link<S>>) -> u64 {
        let depth = link.borrow_mut().requests_in.len();
        self.0
            .core
            .counters()
            .mailbox_depth_max
            .raise_to(depth as u64);
        let mut taken = 0;
        while taken < depth.min(REQUESTS_PER_TURN) {
            // Looked up each time: a request may stop the serving.
            let state = self.0.state.borrow().clone();
            let Some(state) = state else { break };
            let request = link.borrow_mut().requests_in.take();
            let Some(request) = request else { break };
            request(&state, self);
            taken += 1;
        }
        taken as u64
    }
}

impl<S> Link<S> {
    /// Tells the peer, if its messages overflowed, that there is room in its lanes again.
    fn tell_room(&mut self, core: &Core) {
        let requests = self.requests_in.tell_room();
        let replies = self.replies_in.tell_room();
        if requests || replies {
            core.counters().wakeups_sent.one();
        }
    }
}
