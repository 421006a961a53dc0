//! Which partition of `__consumer_offsets` holds a group.

/// The partition of a group: the absolute value of Java's `String.hashCode()`, modulo the number
/// of partitions of `__consumer_offsets`.
///
/// The hash walks UTF-16 units, not bytes. Its lowest value has no absolute value and counts as
/// zero, as in Kafka's `Utils.abs`. `partitions` must be positive.
pub fn partition_for(group_id: &str, partitions: i32) -> i32 {
    java_hash(group_id).checked_abs().unwrap_or(0) % partitions.max(1)
}

fn java_hash(text: &str) -> i32 {
    text.encode_utf16().fold(0i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_and_partition_equal_java() {
        // Printed by Java 17: hashCode(), and Kafka's partition of 50.
        for (text, hash, partition) in EXPECTED {
            assert_eq!(java_hash(text), *hash, "{text}");
            assert_eq!(partition_for(text, 50), *partition, "{text}");
        }
        assert_eq!(java_hash(""), 0);
    }

    const EXPECTED: &[(&str, i32, i32)] = &[
        ("group", 98_629_247, 47),
        ("my-group", -1_906_497_762, 12),
        ("java-matrix", -160_887_348, 48),
        ("polygenelubricants", i32::MIN, 0),
        ("grüße 😀", 347_379_084, 34),
    ];
}
