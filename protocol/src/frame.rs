//! Frames: an int32 length, a header, a message.

use bytes::Bytes;

use crate::api::ApiKey;
use crate::message::Message;
use crate::wire::{DecodeError, DecodeErrorKind, EncodeError, EncodeErrorKind, Reader, Writer};
use crate::{Request, Response, Str};

/// Bytes of the length that stands before each frame, and does not count itself.
pub const LENGTH_BYTES: usize = 4;

/// Reads the length before a frame: `Err` for what cannot be one.
///
/// `max` is the largest frame to accept (`socket.request.max.bytes`).
pub fn parse_length(bytes: [u8; LENGTH_BYTES], max: usize) -> Result<usize, FrameLengthError> {
    let length = i32::from_be_bytes(bytes);
    match usize::try_from(length) {
        Ok(size) if size <= max => Ok(size),
        _ => Err(FrameLengthError { length, max }),
    }
}

/// A length below zero or beyond the limit. The connection has to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLengthError {
    pub length: i32,
    pub max: usize,
}

impl std::fmt::Display for FrameLengthError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "frame of {} bytes; 0 to {} are allowed",
            self.length, self.max
        )
    }
}

impl std::error::Error for FrameLengthError {}

/// The header of a request, version 0, 1 or 2 as the API and its version have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    pub api: ApiKey,
    /// May be any number: see [`RequestHeader::decode`].
    pub version: i16,
    pub correlation_id: i32,
    /// Always has a two-byte length, so that every broker can read every header.
    pub client_id: Option<Str>,
}

impl RequestHeader {
    /// Fails for an unknown API, but not for an unknown version: ApiVersions must be answered in
    /// any version (KIP-511), of which only the header may be read.
    pub fn decode(reader: &mut Reader) -> Result<Self, DecodeError> {
        Self::decode_fields(reader).map_err(|error| error.in_message("RequestHeader", 1))
    }

    fn decode_fields(reader: &mut Reader) -> Result<Self, DecodeError> {
        let code = reader.i16()?;
        let api = ApiKey::from_i16(code)
            .ok_or_else(|| reader.error(DecodeErrorKind::UnknownApiKey(code)))?;
        let version = reader.i16()?;
        let header_version = api.request_header_version(version);
        let correlation_id = reader.i32()?;
        let client_id = if header_version >= 1 {
            reader.nullable_string(false)?
        } else {
            None
        };
        if header_version >= 2 {
            reader.skip_tags()?;
        }
        Ok(RequestHeader {
            api,
            version,
            correlation_id,
            client_id,
        })
    }

    pub fn encode(&self, writer: &mut Writer) -> Result<(), EncodeError> {
        let header_version = self.api.request_header_version(self.version);
        writer.i16(self.api.code());
        writer.i16(self.version);
        writer.i32(self.correlation_id);
        if header_version >= 1 {
            writer.nullable_string(false, self.client_id.as_deref())?;
        }
        if header_version >= 2 {
            writer.no_tags();
        }
        Ok(())
    }
}

/// Writes the header of a response to a request of this API and version.
pub fn encode_response_header(writer: &mut Writer, api: ApiKey, version: i16, correlation_id: i32) {
    writer.i32(correlation_id);
    if api.response_header_version(version) >= 1 {
        writer.no_tags();
    }
}

/// Reads the header of a response; gives the correlation id.
pub fn decode_response_header(
    reader: &mut Reader,
    api: ApiKey,
    version: i16,
) -> Result<i32, DecodeError> {
    let correlation_id = reader.i32()?;
    if api.response_header_version(version) >= 1 {
        reader.skip_tags()?;
    }
    Ok(correlation_id)
}

/// A whole response: length, header, body. In one piece or several, whichever the response is large enough for: put
/// together they are the frame.
pub fn encode_response<R: Response>(
    response: &R,
    version: i16,
    correlation_id: i32,
) -> Result<Vec<Bytes>, EncodeError> {
    let mut writer = Writer::in_pieces(128);
    writer.i32(0);
    encode_response_header(&mut writer, R::API, version, correlation_id);
    response.encode(&mut writer, version)?;
    finish(&mut writer, R::NAME, version)?;
    Ok(writer.into_pieces())
}

/// A whole request: length, header, body.
pub fn encode_request<R: Request>(
    request: &R,
    version: i16,
    correlation_id: i32,
    client_id: Option<Str>,
) -> Result<Bytes, EncodeError> {
    let mut writer = Writer::with_capacity(128);
    writer.i32(0);
    RequestHeader {
        api: R::API,
        version,
        correlation_id,
        client_id,
    }
    .encode(&mut writer)?;
    request.encode(&mut writer, version)?;
    finish(&mut writer, R::NAME, version)?;
    Ok(writer.freeze())
}

/// Fills in the length of the frame.
fn finish(writer: &mut Writer, name: &'static str, version: i16) -> Result<(), EncodeError> {
    let size = writer.len() - LENGTH_BYTES;
    let Ok(length) = i32::try_from(size) else {
        return Err(EncodeError::from(EncodeErrorKind::TooLong(size)).in_message(name, version));
    };
    writer.patch_front(length);
    Ok(())
}

/// Reads a response frame's content (without the length) to a request of this version.
pub fn decode_response<R: Response + Message>(
    frame: Bytes,
    version: i16,
) -> Result<(i32, R), DecodeError> {
    let mut reader = Reader::new(frame);
    let correlation_id = decode_response_header(&mut reader, R::API, version)?;
    Ok((correlation_id, R::decode(&mut reader, version)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::{ApiVersionsRequest, ApiVersionsResponse, HeartbeatRequest};

    #[test]
    fn lengths() {
        assert_eq!(parse_length(100i32.to_be_bytes(), 100), Ok(100));
        for length in [-1, 101, i32::MIN, i32::MAX] {
            let error = FrameLengthError { length, max: 100 };
            assert_eq!(parse_length(length.to_be_bytes(), 100), Err(error));
        }
    }

    #[test]
    fn request_bytes() {
        // The header's client id has the old form of length in a flexible version, too.
        let request = ApiVersionsRequest {
            client_software_name: "a".into(),
            client_software_version: "1".into(),
            ..ApiVersionsRequest::default()
        };
        let frame = encode_request(&request, 3, 7, Some("me".into())).unwrap();
        let expected = b"\0\0\0\x12\0\x12\0\x03\0\0\0\x07\0\x02me\0\x02a\x021\0";
        assert_eq!(frame[..], expected[..]);
        let mut reader = Reader::new(frame.slice(LENGTH_BYTES..));
        let header = RequestHeader::decode(&mut reader).unwrap();
        assert_eq!((header.api, header.version), (ApiKey::ApiVersions, 3));
        assert_eq!(
            (header.correlation_id, header.client_id.as_deref()),
            (7, Some("me"))
        );
        assert_eq!(ApiVersionsRequest::decode(&mut reader, 3), Ok(request));
        assert_eq!(reader.remaining(), 0);
    }

    #[test]
    fn header_of_an_unknown_version_can_be_read() {
        let bytes = b"\0\x12\0\x63\0\0\0\x01\xff\xff\0what nobody knows yet";
        let mut reader = Reader::new(Bytes::from_static(bytes));
        let header = RequestHeader::decode(&mut reader).unwrap();
        assert_eq!((header.version, header.client_id), (99, None));
    }

    #[test]
    fn unknown_api_is_an_error() {
        let mut reader = Reader::new(Bytes::from_static(b"\x7f\xff\0\0\0\0\0\x01\xff\xff"));
        let error = RequestHeader::decode(&mut reader).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::UnknownApiKey(0x7fff));
    }

    #[test]
    fn response_of_api_versions_has_no_tags_in_its_header() {
        let frame = encode_response(&ApiVersionsResponse::default(), 3, 5)
            .unwrap()
            .concat();
        assert_eq!(frame[..], b"\0\0\0\x0c\0\0\0\x05\0\0\x01\0\0\0\0\0"[..]);
        let (id, body) = decode_response(Bytes::from(frame).slice(LENGTH_BYTES..), 3).unwrap();
        assert_eq!((id, body), (5, ApiVersionsResponse::default()));
    }

    #[test]
    fn old_headers_have_no_tags() {
        let request = HeartbeatRequest {
            group_id: "g".into(),
            ..HeartbeatRequest::default()
        };
        let frame = encode_request(&request, 0, 1, None).unwrap();
        assert_eq!(
            frame[..],
            b"\0\0\0\x13\0\x0c\0\0\0\0\0\x01\xff\xff\0\x01g\0\0\0\0\0\0"[..]
        );
    }
}
