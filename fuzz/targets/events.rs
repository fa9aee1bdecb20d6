//! TensorBoard's event files: any bytes, raw and as the data of a record whose checksums are
//! right, give the same scalars however they are cut, and never a panic. The first byte says
//! where they are cut.
#![no_main]

use gpuwatch::read::{EventFile, Scalars};
use libfuzzer_sys::fuzz_target;

/// CRC-32C, masked, as the format wants it.
fn sum(data: &[u8]) -> [u8; 4] {
    crc32c::crc32c(data)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
        .to_le_bytes()
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    [&length[..], &sum(&length), data, &sum(data)].concat()
}

fn same_in_parts(bytes: &[u8], piece: usize) {
    let whole = EventFile::default().feed(bytes);
    let mut file = EventFile::default();
    let parts = bytes.chunks(piece).flat_map(|piece| file.feed(piece));
    let parts: Vec<_> = parts.collect();
    // A NaN is equal to nothing.
    assert_eq!(format!("{parts:?}"), format!("{whole:?}"));
    let mut scalars = Scalars::default();
    let marks = scalars.absorb("train", Some(1.0), &whole);
    assert!(marks.len() <= whole.len());
}

fuzz_target!(|input: &[u8]| {
    let Some((cut, data)) = input.split_first() else {
        return;
    };
    let piece = usize::from(*cut).max(1);
    same_in_parts(data, piece);
    same_in_parts(&record(data), piece);
});
