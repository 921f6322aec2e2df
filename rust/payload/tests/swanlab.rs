//! Records of runs, beside the bytes that the messages of swanlab 0.10.3 serialise to.

use cordwood_payload::{PayloadReason, SwanlabScalar};

const SCALAR: &[u8] = b"\x08\x07\x12\x02\x08\x03j1\n\x04lo\xc3\x9f\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x18\x01\
    \"\x11\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\xe7\xd1\xb5\xee\x01*\t\t\x00\x00\x00\x00\x00\x00\x04@";
const LOG: &[u8] = b"\x82\x01\x03\n\x01x";

#[test]
fn decodes_a_swanlab_scalar() {
    let scalar = SwanlabScalar::decode(SCALAR).unwrap().unwrap();
    assert_eq!((scalar.key, scalar.step, scalar.value), ("lo\u{df}", -1, 2.5));
    assert_eq!(scalar.timestamp, Some(-500_000));
    // Default values are not written.
    let empty = SwanlabScalar::decode(b"j\x00").unwrap().unwrap();
    assert_eq!(
        (empty.key, empty.step, empty.timestamp, empty.value),
        ("", 0, None, 0.0)
    );
}

#[test]
fn swanlab_records_other_than_scalars_have_no_value() {
    assert_eq!(SwanlabScalar::decode(LOG), Ok(None));
    assert_eq!(SwanlabScalar::decode(b""), Ok(None));
}

#[test]
fn swanlab_faults_are_reported_with_offset_and_length() {
    let cases: [(&[u8], usize, usize, PayloadReason); 5] = [
        (b"j\x03\n\x01\xff", 2, 3, PayloadReason::NotUtf8),
        (b"j\x02\x08\x01", 2, 2, PayloadReason::BadWireType),
        (b"j\x00j\x00", 2, 2, PayloadReason::NonCanonical),
        (b"j\x04*\x02\x08\x01", 4, 2, PayloadReason::BadWireType),
        (b"j\x05\n", 1, 2, PayloadReason::Truncated),
    ];
    for (record, offset, len, reason) in cases {
        let error = SwanlabScalar::decode(record).unwrap_err();
        assert_eq!(
            (error.offset, error.len, error.reason),
            (offset, len, reason),
            "{record:?}"
        );
    }
}
