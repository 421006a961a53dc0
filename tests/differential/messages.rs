//! Every API of the schema, with what is sent and what comes back.
use std::collections::BTreeMap;
use std::path::Path;

use crate::schema::{self, Kind, Message};

pub struct Api {
    pub key: i16,
    pub name: String,
    pub request: Message,
    pub response: Message,
}

/// Every API that is known, by name. The same files make the broker's own codec.
pub fn all() -> BTreeMap<String, Api> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("protocol/schema/api");
    let mut all = BTreeMap::new();
    for file in schema::read_folder(&folder) {
        for api in &file.apis {
            let of = |kind| {
                let found = file
                    .messages
                    .iter()
                    .find(|message| message.kind == kind && message.id == Some(api.key));
                found.cloned()
            };
            if let (Some(request), Some(response)) = (of(Kind::Request), of(Kind::Response)) {
                let (key, name) = (api.key, api.name.clone());
                all.insert(
                    name.clone(),
                    Api {
                        key,
                        name,
                        request,
                        response,
                    },
                );
            }
        }
    }
    all
}
