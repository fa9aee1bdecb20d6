//! Event files as they are framed, and what their tags say.

use proptest::prelude::*;

use super::*;

/// A record as `record_writer.h` writes it.
fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut bytes = length.to_vec();
    bytes.extend(masked(&length).to_le_bytes());
    bytes.extend(data);
    bytes.extend(masked(data).to_le_bytes());
    bytes
}

fn event(step: i64, tag: &str, value: f32) -> Vec<u8> {
    let value = SummaryValue {
        tag: tag.to_owned(),
        simple_value: Some(value),
        tensor: None,
    };
    let summary = Some(Summary { value: vec![value] });
    record(&Event { step, summary }.encode_to_vec())
}

fn scalar(step: u64, tag: &str, value: f64) -> Scalar {
    Scalar {
        tag: tag.to_owned(),
        step,
        value,
    }
}

#[test]
fn a_checksum_is_the_formats_own() {
    // From RFC 3720, B.4: 32 bytes of zeros.
    assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
}

#[test]
fn scalars_are_found_in_both_forms_and_long_records_passed_over() {
    let tensor = |tensor| {
        let value = SummaryValue {
            tag: "epoch_loss".to_owned(),
            simple_value: None,
            tensor: Some(tensor),
        };
        let summary = Some(Summary { value: vec![value] });
        record(&Event { step: 2, summary }.encode_to_vec())
    };
    let mut bytes = event(1, "train/loss", 0.5);
    bytes.extend(record(&vec![7; 3 << 20]));
    bytes.extend(record(b"no event at all"));
    bytes.extend(tensor(Tensor {
        dtype: 1,
        content: 0.25_f32.to_le_bytes().to_vec(),
        ..Tensor::default()
    }));
    bytes.extend(tensor(Tensor {
        dtype: 1,
        float_val: vec![1.0, 2.0],
        ..Tensor::default()
    }));
    let mut file = EventFile::default();
    let found = file.feed(&bytes);
    assert_eq!(
        found,
        [scalar(1, "train/loss", 0.5), scalar(2, "epoch_loss", 0.25)]
    );
    assert!(file.pending.is_empty() && !file.is_damaged());
}

#[test]
fn behind_damage_nothing_is_read() {
    let mut bytes = event(1, "loss", 0.5);
    let whole = bytes.len();
    bytes.extend(event(2, "loss", 0.25));
    bytes[whole] ^= 1;
    let mut file = EventFile::default();
    assert_eq!(file.feed(&bytes).len(), 1);
    assert!(file.is_damaged() && file.feed(&event(3, "loss", 0.1)).is_empty());
    // Data that was hurt costs its own record alone.
    let mut bytes = event(1, "loss", 0.5);
    bytes[HEAD + 2] ^= 1;
    bytes.extend(event(2, "loss", 0.25));
    assert_eq!(EventFile::default().feed(&bytes), [scalar(2, "loss", 0.25)]);
}

#[test]
fn tags_say_what_is_training() {
    let mut scalars = Scalars::default();
    let written = [
        scalar(100, "train/loss", 0.5),
        scalar(100, "train/epoch", 1.5),
        scalar(100, "train/learning_rate", 0.1),
        scalar(900, "eval/loss", 0.7),
    ];
    let marks = scalars.absorb("", Some(1.0), &written);
    let [mark] = &marks[..] else {
        panic!("{marks:?}")
    };
    assert_eq!((mark.step, mark.epoch), (Some(100), Some(1.5)));
    assert_eq!(mark.loss.map(|loss| loss.0), Some(0.5));
    assert_eq!(mark.source, "tensorboard");
    let keras = [
        scalar(3, "epoch_loss", 0.4),
        scalar(3, "epoch_accuracy", 0.9),
    ];
    assert!(scalars.absorb("validation", Some(2.0), &keras).is_empty());
    let marks = scalars.absorb("train", Some(2.0), &keras);
    let mark = marks.last().unwrap();
    assert_eq!((mark.epoch, mark.step), (Some(3.0), None));
    assert_eq!(scalars.state().epoch, Some(3.0));
}

proptest! {
    #[test]
    fn any_cut_gives_the_same(
        steps in proptest::collection::vec((0_i64..1000, "[a-z/_]{1,12}", -9.0_f32..9.0), 1..20),
        cuts in proptest::collection::vec(1_usize..4096, 1..50),
        long in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        for (step, tag, value) in &steps {
            bytes.extend(event(*step, tag, *value));
        }
        if long {
            bytes.extend(record(&vec![1; (1 << 20) + 1]));
        }
        bytes.extend(event(7, "loss", 1.0));
        let whole = EventFile::default().feed(&bytes);
        let (mut file, mut rest, mut parts) = (EventFile::default(), &bytes[..], Vec::new());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, left) = rest.split_at(rest.len().min(*cut));
            parts.extend(file.feed(piece));
            rest = left;
        }
        prop_assert_eq!(parts, whole);
    }

    #[test]
    fn no_bytes_stop_it(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let mut file = EventFile::default();
        file.feed(&bytes);
        let mut framed = EventFile::default();
        let found = framed.feed(&record(&bytes));
        prop_assert!(!framed.is_damaged() && found.len() <= bytes.len());
    }
}
