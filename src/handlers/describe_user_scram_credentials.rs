//! DescribeUserScramCredentials: which users have credentials in the metadata. This broker takes none yet, but a
//! directory that Apache wrote may hold some.

use std::collections::BTreeMap;

use protocol::messages::{
    DescribeUserScramCredentialsRequest, DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResponseCredentialInfo,
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult,
};
use protocol::stored::MetadataRecord;
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use crate::metadata::{Image, KeptKey};

/// The handler.
pub struct DescribeUserScramCredentials;

/// The credentials of each user.
type Credentials = BTreeMap<Str, Vec<DescribeUserScramCredentialsResponseCredentialInfo>>;

impl Handler for DescribeUserScramCredentials {
    type Request = DescribeUserScramCredentialsRequest;

    async fn handle(
        call: Call,
        request: DescribeUserScramCredentialsRequest,
    ) -> DescribeUserScramCredentialsResponse {
        let credentials = credentials(&call.shard.image());
        let named = request.users.unwrap_or_default();
        let mut asked: BTreeMap<Str, usize> = BTreeMap::new();
        for user in named {
            *asked.entry(user.name).or_default() += 1;
        }
        if asked.is_empty() {
            asked = credentials.keys().map(|user| (user.clone(), 1)).collect();
        }
        let results = asked
            .into_iter()
            .map(|(user, times)| describe(&credentials, user, times > 1));
        DescribeUserScramCredentialsResponse {
            error_message: Some(Str::default()),
            results: results.collect(),
            ..Default::default()
        }
    }
}

fn credentials(image: &Image) -> Credentials {
    let mut credentials = Credentials::new();
    for (key, record) in image.kept.iter() {
        if let (KeptKey::Scram(mechanism, user), MetadataRecord::UserScramCredential(it)) =
            (key, record)
        {
            let info = DescribeUserScramCredentialsResponseCredentialInfo {
                mechanism: *mechanism,
                iterations: it.iterations,
            };
            credentials.entry(user.clone()).or_default().push(info);
        }
    }
    credentials
}

fn describe(
    credentials: &Credentials,
    user: Str,
    repeated: bool,
) -> DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult {
    let refusal = match credentials.get(&user) {
        _ if repeated => (
            ErrorCode::DuplicateResource,
            format!(
                "Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
            ),
        ),
        None => (
            ErrorCode::ResourceNotFound,
            format!("Attempt to describe a user credential that does not exist: {user}"),
        ),
        Some(infos) => {
            return DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult {
                user,
                error_message: None,
                credential_infos: infos.clone().into(),
                ..Default::default()
            };
        }
    };
    DescribeUserScramCredentialsResponseDescribeUserScramCredentialsResult {
        user,
        error_code: refusal.0.code(),
        error_message: Some(Str::from(refusal.1).shortened()),
        ..Default::default()
    }
}
