//! Records as the drivers exchange them with the tests; the layout stands in the README above.
use std::io::{self, Read, Write};

use rdkafka::message::{Headers, Message, OwnedHeaders};

pub struct Record {
    pub partition: i32,
    pub timestamp: i64,
    pub key: Option<Vec<u8>>,
    pub value: Option<Vec<u8>>,
    pub headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Record {
    /// The next record, or none at the end of the input.
    pub fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let Some(partition) = read_first(input)? else {
            return Ok(None);
        };
        let _offset = read_i64(input)?;
        let timestamp = read_i64(input)?;
        let key = read_bytes(input)?;
        let value = read_bytes(input)?;
        let mut headers = Vec::new();
        for _ in 0..read_i32(input)? {
            let name = read_bytes(input)?.unwrap_or_default();
            let name = String::from_utf8(name).map_err(io::Error::other)?;
            headers.push((name, read_bytes(input)?));
        }
        Ok(Some(Self {
            partition,
            timestamp,
            key,
            value,
            headers,
        }))
    }

    pub fn owned_headers(&self) -> OwnedHeaders {
        let mut headers = OwnedHeaders::new();
        for (key, value) in &self.headers {
            headers = headers.insert(rdkafka::message::Header {
                key,
                value: value.as_ref(),
            });
        }
        headers
    }
}

/// Writes a consumed message as a record.
pub fn write(output: &mut impl Write, message: &impl Message) -> io::Result<()> {
    output.write_all(&message.partition().to_be_bytes())?;
    output.write_all(&message.offset().to_be_bytes())?;
    output.write_all(&message.timestamp().to_millis().unwrap_or(-1).to_be_bytes())?;
    write_bytes(output, message.key())?;
    write_bytes(output, message.payload())?;
    let headers = message.headers();
    let count = headers.map_or(0, Headers::count);
    output.write_all(
        &i32::try_from(count)
            .map_err(io::Error::other)?
            .to_be_bytes(),
    )?;
    for header in headers.into_iter().flat_map(Headers::iter) {
        write_bytes(output, Some(header.key.as_bytes()))?;
        write_bytes(output, header.value)?;
    }
    Ok(())
}

fn write_bytes(output: &mut impl Write, bytes: Option<&[u8]>) -> io::Result<()> {
    let Some(bytes) = bytes else {
        return output.write_all(&(-1i32).to_be_bytes());
    };
    output.write_all(
        &i32::try_from(bytes.len())
            .map_err(io::Error::other)?
            .to_be_bytes(),
    )?;
    output.write_all(bytes)
}

fn read_first(input: &mut impl Read) -> io::Result<Option<i32>> {
    let mut first = [0; 1];
    if input.read(&mut first)? == 0 {
        return Ok(None);
    }
    let mut rest = [0; 3];
    input.read_exact(&mut rest)?;
    Ok(Some(i32::from_be_bytes([
        first[0], rest[0], rest[1], rest[2],
    ])))
}

fn read_i32(input: &mut impl Read) -> io::Result<i32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(i32::from_be_bytes(bytes))
}

fn read_i64(input: &mut impl Read) -> io::Result<i64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(i64::from_be_bytes(bytes))
}

fn read_bytes(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let Ok(length) = usize::try_from(read_i32(input)?) else {
        return Ok(None);
    };
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}
