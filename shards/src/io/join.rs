//! Two operations under way at once.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs both to their ends.
pub(super) async fn join<F: Future, G: Future>(
    mut one: Pin<&mut F>,
    mut other: Pin<&mut G>,
) -> (F::Output, G::Output) {
    let (mut first, mut second) = (None, None);
    poll_fn(|context| {
        poll_once(&mut first, &mut one, context);
        poll_once(&mut second, &mut other, context);
        match (first.take(), second.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (one, other) => {
                (first, second) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

/// Polls what has no result yet.
fn poll_once<F: Future>(
    result: &mut Option<F::Output>,
    future: &mut Pin<&mut F>,
    context: &mut Context<'_>,
) {
    if result.is_none()
        && let Poll::Ready(value) = future.as_mut().poll(context)
    {
        *result = Some(value);
    }
}
