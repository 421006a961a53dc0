//! Records as they pass between the tests and the drivers; `tests/clients/README.md` has the layout.
use std::io::{self, Read, Write};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// -1 in a record to produce: the client chooses.
    pub partition: i32,
    pub offset: i64,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    pub fn write(&self, output: &mut impl Write) -> io::Result<()> {
        output.write_all(&self.partition.to_be_bytes())?;
        output.write_all(&self.offset.to_be_bytes())?;
        output.write_all(&self.timestamp.to_be_bytes())?;
        write_bytes(output, self.key.as_deref())?;
        write_bytes(output, self.value.as_deref())?;
        let count = i32::try_from(self.headers.len()).expect("few headers");
        output.write_all(&count.to_be_bytes())?;
        for (name, value) in &self.headers {
            write_bytes(output, Some(name.as_bytes()))?;
            write_bytes(output, value.as_deref())?;
        }
        Ok(())
    }

    /// The next record of a stream, or none where it ends between two records.
    pub fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut first = [0; 1];
        if input.read(&mut first)? == 0 {
            return Ok(None);
        }
        let rest: [u8; 3] = read_array(input)?;
        let partition = i32::from_be_bytes([first[0], rest[0], rest[1], rest[2]]);
        let offset = i64::from_be_bytes(read_array(input)?);
        let timestamp = i64::from_be_bytes(read_array(input)?);
        let key = read_bytes(input)?;
        let value = read_bytes(input)?;
        let mut headers = Vec::new();
        for _ in 0..i32::from_be_bytes(read_array(input)?) {
            let name = read_bytes(input)?.unwrap_or_default();
            headers.push((
                String::from_utf8(name).map_err(io::Error::other)?,
                read_bytes(input)?,
            ));
        }
        Ok(Some(Self {
            partition,
            offset,
            timestamp,
            key,
            value,
            headers,
        }))
    }

    /// What the two records differ in, for a message that a person can read.
    pub fn difference(&self, other: &Self) -> Option<String> {
        let differs = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
            Some(format!("{what} {a:.60?} against {b:.60?}"))
        };
        if self.timestamp != other.timestamp {
            return differs("timestamp", &self.timestamp, &other.timestamp);
        }
        if self.key != other.key {
            return differs("key", &self.key, &other.key);
        }
        if self.headers != other.headers {
            return differs("headers", &self.headers, &other.headers);
        }
        if self.value != other.value {
            let length = |record: &Self| record.value.as_ref().map(Vec::len);
            return differs("value of length", &length(self), &length(other));
        }
        None
    }
}

fn write_bytes(output: &mut impl Write, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else {
        return output.write_all(&(-1i32).to_be_bytes());
    };
    output.write_all(
        &i32::try_from(bytes.len())
            .expect("under 2 GiB")
            .to_be_bytes(),
    )?;
    output.write_all(bytes)
}

fn read_array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_bytes(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let Ok(length) = usize::try_from(i32::from_be_bytes(read_array(input)?)) else {
        return Ok(None);
    };
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}
