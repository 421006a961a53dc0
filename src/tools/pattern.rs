//! Names given by a pattern, as Kafka's tools read them.

use regex::Regex;

use super::Failure;

/// A list of names or patterns with commas, which has to match the whole of a name.
pub(super) struct Pattern(Regex);

impl Pattern {
    /// Commas separate, spaces and quotes around it are of no account.
    ///
    /// # Errors
    /// It is no regular expression.
    pub(super) fn of_list(text: &str) -> Result<Pattern, Failure> {
        let spaceless = text.trim().replace(',', "|").replace(' ', "");
        let bare = spaceless.trim_matches(['"', '\'']);
        Pattern::of(bare).map_err(|_| Failure::new(format!("{bare} is an invalid regex.")))
    }

    /// Exactly as it stands.
    ///
    /// # Errors
    /// It is no regular expression.
    pub(super) fn of(text: &str) -> Result<Pattern, Failure> {
        Regex::new(&format!("^(?:{text})$"))
            .map(Pattern)
            .map_err(|_| Failure::new(format!("{text} is an invalid regex.")))
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

/// The topics that brokers write themselves.
pub(super) fn is_internal(topic: &str) -> bool {
    [
        "__consumer_offsets",
        "__transaction_state",
        "__share_group_state",
    ]
    .contains(&topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_matches_whole_names() {
        let list = Pattern::of_list(" 'a.*, b' ").unwrap();
        assert!(list.matches("abc") && list.matches("b"));
        assert!(!list.matches("xa") && !list.matches("bc"));
        assert_eq!(
            Pattern::of_list("a(").err(),
            Some(Failure::new("a( is an invalid regex."))
        );
    }
}
