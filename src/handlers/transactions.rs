//! ListTransactions and DescribeTransactions: transactional producers are refused, so there is none to tell of.

use protocol::ErrorCode;
use protocol::messages::{
    DescribeTransactionsRequest, DescribeTransactionsResponse,
    DescribeTransactionsResponseTransactionState, ListTransactionsRequest,
    ListTransactionsResponse,
};

use super::api::{Call, Handler};

/// The handler of ListTransactions.
pub struct ListTransactions;
/// The handler of DescribeTransactions.
pub struct DescribeTransactions;

/// The states that a filter can name.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

impl Handler for ListTransactions {
    type Request = ListTransactionsRequest;

    async fn handle(_: Call, request: ListTransactionsRequest) -> ListTransactionsResponse {
        let unknown = request.state_filters.into_iter();
        ListTransactionsResponse {
            unknown_state_filters: unknown
                .filter(|state| !STATES.contains(&&**state))
                .collect(),
            ..Default::default()
        }
    }
}

impl Handler for DescribeTransactions {
    type Request = DescribeTransactionsRequest;

    async fn handle(_: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse {
        let named = request.transactional_ids.into_iter();
        let states = named.map(|id| {
            let error = match id.is_empty() {
                true => ErrorCode::InvalidRequest,
                false => ErrorCode::TransactionalIdNotFound,
            };
            DescribeTransactionsResponseTransactionState {
                error_code: error.code(),
                transactional_id: id,
                ..Default::default()
            }
        });
        DescribeTransactionsResponse {
            transaction_states: states.collect(),
            ..Default::default()
        }
    }
}
