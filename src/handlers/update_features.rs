//! UpdateFeatures: which levels of Kafka's features the cluster runs at.

use protocol::messages::{
    UpdateFeaturesRequest, UpdateFeaturesResponse, UpdateFeaturesResponseUpdatableFeatureResult,
};
use protocol::{ErrorCode, Str};

use super::api::{Call, Handler};
use crate::controller::{FeatureUpdate, UpdateFeatures as Updates};
use crate::shard::ask_controller;

/// The handler.
pub struct UpdateFeatures;

/// Last version whose answers tell of each feature.
const RESULTS_UNTIL: i16 = 1;

impl Handler for UpdateFeatures {
    type Request = UpdateFeaturesRequest;

    async fn handle(call: Call, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse {
        let updates: Vec<FeatureUpdate> = request
            .feature_updates
            .into_iter()
            .map(|update| FeatureUpdate {
                feature: update.feature,
                level: update.max_version_level,
                upgrade_type: update.upgrade_type,
            })
            .collect();
        let names: Vec<Str> = updates
            .iter()
            .map(|update| update.feature.clone())
            .collect();
        let updates = Updates {
            updates,
            validate_only: request.validate_only,
        };
        let asked = ask_controller(&call.shard, move |controller| async move {
            controller.update_features(updates).await
        });
        match asked.await {
            Ok(Ok(())) => done(&call, names),
            Ok(Err((error, why))) => refused(
                error,
                format!(
                    "The update failed for all features since the following feature had an error: {why}"
                ),
            ),
            Err(error) => {
                tracing::warn!(%error, "the controller could not update features");
                let code = error.code();
                refused(code, code.message().to_owned())
            }
        }
    }
}

fn done(call: &Call, names: Vec<Str>) -> UpdateFeaturesResponse {
    let told = names
        .into_iter()
        .filter(|_| call.version() <= RESULTS_UNTIL);
    let results = told.map(|feature| UpdateFeaturesResponseUpdatableFeatureResult {
        feature,
        // Kafka's word for no error.
        error_message: Some(Str::from_static("NONE")),
        ..Default::default()
    });
    UpdateFeaturesResponse {
        error_message: None,
        results: results.collect(),
        ..Default::default()
    }
}

fn refused(error: ErrorCode, message: String) -> UpdateFeaturesResponse {
    UpdateFeaturesResponse {
        error_code: error.code(),
        error_message: Some(Str::from(message).shortened()),
        ..Default::default()
    }
}
