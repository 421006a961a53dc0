//! `ApiKey` and its table.

use std::fmt::Write as _;

use crate::schema::{File, Kind};

pub fn table(files: &[File]) -> String {
    let mut apis: Vec<_> = files
        .iter()
        .flat_map(|file| file.apis.iter().map(move |api| (api, file)))
        .collect();
    apis.sort_by_key(|(api, _)| api.key);
    assert!(
        apis.iter().map(|(api, _)| api.key).eq(0..apis.len() as i16),
        "api keys leave a gap"
    );
    let mut out = String::from(
        "/// What a request asks for: the first number of its header.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\n\
         #[repr(i16)]\npub enum ApiKey {\n",
    );
    for (api, _) in &apis {
        let _ = writeln!(out, "    {} = {},", api.name, api.key);
    }
    out.push_str(
        "}\n/// One row an API, in the order of their keys.\nstatic APIS: &[ApiInfo] = &[\n",
    );
    for (api, file) in &apis {
        let request = file
            .messages
            .iter()
            .find(|message| message.kind == Kind::Request && message.id == Some(api.key));
        let listener = |name: &str| api.listeners.iter().any(|one| one == name);
        let (min, max, stable, flexible) = match request {
            Some(one) => (
                one.versions.min,
                one.versions.max,
                one.versions.max - i16::from(one.latest_unstable),
                if one.flexible.is_empty() {
                    i16::MAX
                } else {
                    one.flexible.min
                },
            ),
            None => (1, 0, 0, i16::MAX),
        };
        let _ = writeln!(
            out,
            "    ApiInfo {{ key: ApiKey::{name}, name: \"{name}\", min: {min}, max: {max}, \
             max_stable: {stable}, flexible_from: {flexible}, advertised_min: {advertised}, \
             on_broker: {broker}, on_controller: {controller}, cluster_action: {cluster}, \
             forwardable: {forward} }},",
            name = api.name,
            advertised = api.advertised_min.unwrap_or(min),
            broker = listener("broker"),
            controller = listener("controller"),
            cluster = api.cluster_action,
            forward = api.forwardable,
        );
    }
    out.push_str("];\n");
    out
}
