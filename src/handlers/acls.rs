//! DescribeAcls, CreateAcls and DeleteAcls: there is no authorizer, and that is what they say.

use protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, CreateAclsResponseAclCreationResult, DeleteAclsRequest,
    DeleteAclsResponse, DeleteAclsResponseDeleteAclsFilterResult, DescribeAclsRequest,
    DescribeAclsResponse,
};
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};

/// The handler of DescribeAcls.
pub struct DescribeAcls;
/// The handler of CreateAcls.
pub struct CreateAcls;
/// The handler of DeleteAcls.
pub struct DeleteAcls;

const DISABLED: ErrorCode = ErrorCode::SecurityDisabled;
/// Kafka's controller answers those who want to change ACLs.
const NO_AUTHORIZER: Str = Str::from_static("No Authorizer is configured.");

impl Handler for DescribeAcls {
    type Request = DescribeAclsRequest;

    async fn handle(_: Call, _: DescribeAclsRequest) -> DescribeAclsResponse {
        DescribeAclsResponse {
            error_code: DISABLED.code(),
            error_message: Some(Str::from_static(
                "No Authorizer is configured on the broker",
            )),
            ..Default::default()
        }
    }
}

impl Handler for CreateAcls {
    type Request = CreateAclsRequest;

    async fn handle(_: Call, request: CreateAclsRequest) -> CreateAclsResponse {
        let refused = CreateAclsResponseAclCreationResult {
            error_code: DISABLED.code(),
            error_message: Some(NO_AUTHORIZER),
        };
        CreateAclsResponse {
            results: vec![refused; request.creations.len()].into(),
            ..Default::default()
        }
    }
}

impl Handler for DeleteAcls {
    type Request = DeleteAclsRequest;

    async fn handle(_: Call, request: DeleteAclsRequest) -> DeleteAclsResponse {
        let refused = DeleteAclsResponseDeleteAclsFilterResult {
            error_code: DISABLED.code(),
            error_message: Some(NO_AUTHORIZER),
            ..Default::default()
        };
        DeleteAclsResponse {
            filter_results: vec![refused; request.filters.len()].into(),
            ..Default::default()
        }
    }
}
