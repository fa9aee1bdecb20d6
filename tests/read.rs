//! The grammar and the tracker through the library: styles of many frameworks, one line each.

use gpuwatch::model::{Mark, Phase, Stream};
use gpuwatch::read::{Layout, ProgressReader};
use proptest::prelude::*;

/// The last mark of a phase, of lines that come through a pipe.
fn last(phase: Phase, text: &str) -> Mark {
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    let mut marks = reader.feed(Stream::Out, None, text.as_bytes());
    marks.extend(reader.finish(None));
    marks
        .into_iter()
        .rfind(|m| m.phase == phase)
        .unwrap_or_default()
}

/// Epoch, epochs, step, steps.
type Counts = (Option<f64>, Option<f64>, Option<u64>, Option<u64>);

fn counts(text: &str) -> Counts {
    let m = last(Phase::Train, text);
    (m.epoch, m.epochs, m.step, m.steps)
}

const STYLES: [(&str, Counts); 30] = [
    ("Epoch 3/10", (Some(3.0), Some(10.0), None, None)),
    ("Epoch 3 of 10", (Some(3.0), Some(10.0), None, None)),
    ("Epoch #4: loss=0.3", (Some(4.0), None, None, None)),
    ("Step 12/50 loss 0.3", (None, None, Some(12), Some(50))),
    (
        "step 1,200/10,000 | loss 2.1",
        (None, None, Some(1200), Some(10_000)),
    ),
    (
        "Epoch 1/2\n 12/50 ━━━━ 2s 49ms/step - loss: 0.6",
        (Some(1.0), Some(2.0), Some(12), Some(50)),
    ),
    (
        "Epoch 1/2\n 12/Unknown ━━━━ 2s 49ms/step - loss: 0.6",
        (Some(1.0), Some(2.0), Some(12), None),
    ),
    (
        "30000/60000 [=====>.....] - ETA: 12s - loss: 0.5",
        (None, None, Some(30_000), Some(60_000)),
    ),
    (
        "11/30 12:00:00 - mmengine - INFO - Epoch(train)  [1][ 50/468]  lr: 1.0e-02  loss: 0.5",
        (Some(1.0), None, Some(50), Some(468)),
    ),
    (
        "[11/30 12:00:00 d2.utils.events]:  eta: 0:10:00  iter: 19  total_loss: 1.234  time: 0.3",
        (None, None, Some(19), None),
    ),
    (
        "2026-11-30 12:00:00 | INFO | train_inner | epoch 003:    100 / 1000 loss=5.2, ppl=12.3",
        (Some(3.0), None, Some(100), Some(1000)),
    ),
    (
        "Train: 2 [  50/1251 (  4%)]  Loss: 6.912 (6.93)  Time: 0.412s",
        (Some(2.0), None, Some(50), Some(1251)),
    ),
    (
        "Epoch: [0][  10/5005]\tTime  0.5 ( 0.6)\tLoss 6.9e+00 (6.9e+00)",
        (Some(0.0), None, Some(10), Some(5005)),
    ),
    (
        "100:\tlearn: 0.4\ttest: 0.42\tbest: 0.42 (100)\ttotal: 5.1s",
        (None, None, Some(100), None),
    ),
    (
        "[20]\tvalid_0's auc: 0.92\tvalid_0's binary_logloss: 0.38",
        (None, None, Some(20), None),
    ),
    (
        "2026-11-30 12:00:00,123 epoch 1 - iter 10/100 - loss 0.52 - time (sec): 1.20",
        (Some(1.0), None, Some(10), Some(100)),
    ),
    (
        "epoch: 1 step: 20, loss is 2.2012",
        (Some(1.0), None, Some(20), None),
    ),
    (
        "[epoch=1/2][batch=10/40]:",
        (Some(1.0), Some(2.0), Some(10), Some(40)),
    ),
    (
        "  epoch    train_loss    valid_loss     dur\n-------  ----\n      2        0.66       0.65    0.02",
        (Some(2.0), None, None, None),
    ),
    (
        "E    #       LOSS TOK2VEC  LOSS NER  SCORE \n  7     200         12.00    500.00    0.80",
        (Some(7.0), None, Some(200), None),
    ),
    (
        "[1,  2000] loss: 2.201",
        (Some(1.0), None, Some(2000), None),
    ),
    (
        "[0/5][50/1583]\tLoss_D: 0.5\tLoss_G: 5.1",
        (Some(0.0), Some(5.0), Some(50), Some(1583)),
    ),
    (
        "loss: 2.3  [ 6464/60000]",
        (None, None, Some(6464), Some(60_000)),
    ),
    (
        "| epoch   1 |   200/ 2983 batches | lr 20.00 | loss  6.81",
        (Some(1.0), None, Some(200), Some(2983)),
    ),
    (
        r#"{"epoch": 3, "epochs": 4, "step": 5, "total_steps": 40, "loss": 0.3}"#,
        (Some(3.0), Some(4.0), Some(5), Some(40)),
    ),
    (
        "level=info msg=\"train step\" epoch=3 step=120 total_steps=1000 loss=0.51",
        (Some(3.0), None, Some(120), Some(1000)),
    ),
    (
        "Episode 10/500, reward: 21.0",
        (None, None, Some(10), Some(500)),
    ),
    (
        "\r 50% (50 of 100) |#####     | Elapsed Time: 0:00:05 ETA:   0:00:05",
        (None, None, Some(50), Some(100)),
    ),
    (
        "I1130 12:00:00.123456 139 writer.py:48] [200] accuracy=0.6, loss=2.1",
        (None, None, Some(200), None),
    ),
    (
        "\rEpoch:   0%|          | 0/3 [00:00<?, ?it/s]\n\rIteration:  10%|█         | 12/120 [00:01<00:10, 10it/s]\x1b[A",
        (Some(0.0), Some(3.0), Some(12), Some(120)),
    ),
];

#[test]
fn styles_of_many_frameworks() {
    for (text, want) in STYLES {
        assert_eq!(counts(text), want, "{text}");
    }
}

#[test]
fn what_is_no_progress() {
    for text in [
        "The ratio is 3/4 and the images are 16/9 on 2026/11/30.",
        "Using 2/8 GPUs",
        "Total steps: 1000",
        "Num epochs: 10",
        "Loaded checkpoint at epoch 5 (best epoch 3)",
        "torch 2.1/cu118, python 3.12.1",
        "Saving every 500 steps",
        "Step 1: download the data",
        "Test 3/10 passed",
        "10/10 tests passed",
        "found 12/12 files, retry 2/5",
        "/data/train/step/3/10/img.png",
        "Test set: Average loss: 0.4376, Accuracy: 322/400 (80%)",
        "tests/test_a.py ........   [ 45%]",
        "Restoring model weights from the end of the best epoch: 1.",
        "RuntimeError: bad batch 24 (label out of range: 11 not in 0..9)",
        "GET /item/3/10 200 0.12s cache 62%",
    ] {
        assert_eq!(counts(text), (None, None, None, None), "{text}");
    }
}

#[test]
fn bars_beside_training_are_told_apart() {
    let hf = "\r 17%|█▋        | 20/120 [00:03<00:21,  4.70it/s]\n\r  0%|          | 0/7 [00:00<?, ?it/s]\x1b[A\
              \n\r 57%|█████▋    | 4/7 [00:00<00:00, 20it/s]\x1b[A";
    assert_eq!(
        counts(hf).2,
        Some(20),
        "an unnamed bar within is a look at the result"
    );
    assert_eq!(last(Phase::Eval, hf).step, Some(4));
    let nested = "\r  0%|          | 0/10 [00:00<?, ?it/s]\n\r 50%|█████     | 195/391 [00:01<00:01, 100it/s]\x1b[A";
    assert_eq!(
        counts(nested),
        (Some(0.0), Some(10.0), Some(195), Some(391))
    );
    let evaluate =
        "Epoch 1/1\n50/50 ━━━━ 2s 49ms/step - loss: 0.6\n10/10 ━━━━ 0s 9ms/step - loss: 0.9\n";
    assert_eq!(counts(evaluate).3, Some(50));
    let chores = "Map:  40%|████      | 4000/10000 [00:01<00:01, 4000 examples/s]\n\
                  model.safetensors:  12%|█▏        | 1.2G/10.0G [00:10<01:10, 120MB/s]\n";
    assert_eq!(counts(chores), (None, None, None, None));
}

#[test]
fn ranks_are_not_mixed() {
    let text = "[rank1] step 90/100 loss 0.9\n[rank0] step 10/100 loss 0.1\n[rank1] step 91/100 loss 0.9\n";
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    let marks = reader.feed(Stream::Out, None, text.as_bytes());
    assert_eq!(
        marks.iter().map(|m| m.rank).collect::<Vec<_>>(),
        [Some(1), Some(0), Some(1)]
    );
    assert_eq!(reader.state().step, Some(10));
    assert_eq!(
        last(Phase::Train, "3: step 10/100 loss 0.5\n").rank,
        Some(3)
    );
    assert_eq!(
        last(Phase::Train, "[1,2]<stdout>:step 10/100 loss 0.5\n").rank,
        Some(2)
    );
}

#[test]
fn rates_and_what_remains() {
    let shown = |line: &str| last(Phase::Train, &format!("{line}\n")).rate;
    assert_eq!(
        shown(" 30%|###       | 30/100 [00:01<00:02, 20.1it/s]"),
        Some(20.1)
    );
    assert_eq!(
        shown(" 30%|###       | 30/100 [00:01<00:02,  4.00s/it]"),
        Some(0.25)
    );
    assert_eq!(shown("12/50 ━━━━ 2s 50ms/step - loss: 0.6"), Some(20.0));
    assert_eq!(shown("step 5/10 | loss 0.5 | 19.5 steps/s"), Some(19.5));
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    for i in 0..20_u32 {
        reader.feed(
            Stream::Out,
            Some(f64::from(i)),
            format!("step {}/100 loss 1\n", i * 2).as_bytes(),
        );
    }
    let state = reader.state();
    assert_eq!(state.rate, Some(2.0));
    assert_eq!(state.overall_pct, Some(38.0));
    assert!(
        state.eta_s.is_some_and(|s| (s - 31.0).abs() < 0.5),
        "{state:?}"
    );
}

#[test]
fn a_number_cut_in_two_is_never_read() {
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    reader.feed(Stream::Out, None, b"step 12/500 loss 0.5\n");
    reader.feed(Stream::Out, None, b"step 1");
    assert_eq!(reader.state().step, Some(12));
    reader.feed(Stream::Out, None, b"30/500 loss 0.4 ");
    assert_eq!(reader.state().step, Some(130));
}

/// Output as programs write it, with all that redraws lines.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => (1u8..9, 1u8..9).prop_map(|(a, b)| format!("Epoch {a}/{b}\n").into_bytes()),
        3 => (0u8..99, 0u8..99).prop_map(|(a, b)| format!("\rTrain: {a:3}%|██▍  | {a}/{b} [00:01<00:02, 9.1it/s, loss=0.{b}]").into_bytes()),
        2 => (0u8..99, 1u8..99).prop_map(|(a, b)| format!("\n\r{a:3}%|█  | {a}/{b} [00:01<00:02, 9.1it/s]\x1b[A").into_bytes()),
        2 => (0u8..99, 0u8..99).prop_map(|(a, b)| format!("step {a}, loss = {b}.5\r\n").into_bytes()),
        1 => "[ -~]{0,12}".prop_map(String::into_bytes),
        1 => prop::sample::select(vec!["\n", "\r", "\x08\x08", "\x1b[2K", "\x1b[A", "轮", "😀"]).prop_map(|s| s.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ]
}

proptest! {
    #[test]
    fn the_final_state_does_not_depend_on_the_cutting(
        pieces in prop::collection::vec(piece(), 0..30),
        cuts in prop::collection::vec(1usize..30, 1..20),
        plain in any::<bool>(),
    ) {
        let layout = if plain { Layout::Plain } else { Layout::Terminal { cols: 40, rows: 5 } };
        let bytes = pieces.concat();
        let run = |sizes: &[usize]| {
            let mut reader = ProgressReader::new(layout, layout);
            let mut rest: &[u8] = &bytes;
            for size in sizes.iter().cycle() {
                let n = (*size).min(rest.len());
                reader.feed(Stream::Out, Some(1.0), &rest[..n]);
                rest = &rest[n..];
                if rest.is_empty() {
                    break;
                }
            }
            let before = format!("{:?}", reader.state());
            reader.finish(Some(1.0));
            (before, format!("{:?}", reader.state()))
        };
        prop_assert_eq!(run(&cuts), run(&[usize::MAX]));
    }

    #[test]
    fn no_bytes_make_it_panic(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..20),
        lines in prop::collection::vec("[-0-9a-zA-Z%|/:=.,<>\\[\\](){} #━第轮]{0,60}\n", 0..20),
        cols in any::<u16>(),
        rows in 0u16..300,
    ) {
        let mut reader = ProgressReader::new(Layout::Terminal { cols, rows }, Layout::Plain);
        for (i, chunk) in chunks.iter().enumerate() {
            reader.feed(Stream::Out, Some(i as f64), chunk);
            reader.resize(Stream::Out, cols.wrapping_mul(i as u16), rows);
        }
        for line in lines {
            reader.feed(Stream::Err, None, line.as_bytes());
        }
        reader.finish(None);
        let state = reader.state();
        prop_assert!(state.overall_pct.is_none_or(|p| (0.0..=100.0).contains(&p)));
    }
}

/// As Keras does it: back over what was drawn, then the new text, padded to the old width.
#[test]
fn a_bar_that_was_once_too_long_for_the_terminal_goes_on() {
    let layout = Layout::Terminal { cols: 80, rows: 24 };
    let mut reader = ProgressReader::new(layout, Layout::Plain);
    let bar = "━".repeat(20);
    let mut drawn = 0;
    for step in 1_u32..6 {
        let pace = if step == 1 {
            "3:19:48 12s/step"
        } else {
            "1s 1ms/step"
        };
        let text =
            format!("{step:>4}/1000 {bar} {pace} - accuracy: 0.5312 - f1: 0.25 - loss: 0.6{step}");
        let width = text.chars().count();
        let back = "\x08".repeat(drawn);
        let padding = " ".repeat(usize::saturating_sub(drawn, width));
        reader.feed(
            Stream::Out,
            Some(f64::from(step)),
            format!("{back}\r{text}{padding}").as_bytes(),
        );
        // The size is told again and again, and is the same.
        reader.resize(Stream::Out, 80, 24);
        assert_eq!(reader.state().step, Some(u64::from(step)));
        assert!(step > 1 || width > 80);
        drawn = width;
    }
}

/// Frames of two rows whose texts come again in every epoch.
#[test]
fn every_frame_of_a_display_of_two_rows_counts() {
    let mut text = String::from("\n\n");
    for epoch in 1..=5 {
        for step in [0, 20, 40, 60, 80, 100] {
            let frame =
                format!("\x1b[2A\r\x1b[KEpoch {epoch}/5\n\r\x1b[KBatch [##########] {step}/100\n");
            text.push_str(&frame);
        }
    }
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    let marks = reader.feed(Stream::Out, None, text.as_bytes());
    let seen = |epoch: f64, step| {
        let fits = |m: &Mark| m.epoch == Some(epoch) && m.step == Some(step);
        marks.iter().any(fits)
    };
    for epoch in 1..=5 {
        for step in [20, 40, 60, 80, 100] {
            assert!(seen(f64::from(epoch), step), "{step} of epoch {epoch}");
        }
    }
}

/// Percent of the whole run after each line.
fn overall(lines: &[&str]) -> Vec<Option<f64>> {
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    let state = |line: &&str| {
        reader.feed(Stream::Out, None, format!("{line}\n").as_bytes());
        reader.state().overall_pct
    };
    lines.iter().map(state).collect()
}

#[test]
fn a_step_that_rises_over_an_epochs_end_is_not_thereby_the_whole_runs() {
    let known = [
        "epoch 2/10 step 20/80",
        "epoch 3/10 step 40/80",
        "epoch 4/10 step 60/80",
    ];
    assert_eq!(overall(&known).pop().flatten(), Some(37.5));
    let unknown = [
        "epoch 002: 20 / 80 loss=9",
        "epoch 003: 40 / 80 loss=8",
        "epoch 005: 80 / 80 loss=7",
    ];
    assert_eq!(overall(&unknown), [None; 3]);
    let whole = [
        "Epoch 1/4 step 50/200",
        "Epoch 2/4 step 51/200",
        "Epoch 2/4 step 100/200",
    ];
    assert_eq!(overall(&whole).pop().flatten(), Some(50.0));
}

#[test]
fn a_loop_that_begins_again_after_its_end_is_one_of_many() {
    let folds = [
        "Fold 1/5 Epoch 10/10 loss 0.5",
        "Fold 2/5 Epoch 1/10 loss 0.5",
    ];
    assert_eq!(overall(&folds).pop(), Some(None));
}

#[test]
fn counters_that_end_one_short_of_their_total_count_from_zero() {
    let lines = [
        "epoch 0/5 iter 0/20",
        "epoch 0/5 iter 19/20",
        "epoch 4/5 iter 0/20",
        "epoch 4/5 iter 19/20",
    ];
    assert_eq!(overall(&lines).pop().flatten(), Some(99.0));
}

/// A display of two rows that is drawn again below each line that a log prints above it.
#[test]
fn frames_below_a_log_count_though_they_repeat() {
    let mut text = String::from("Epoch 1/3\nBatch [##########] 0/100\n");
    let frame = |epoch, step| {
        format!(
            "\x1b[2A\r\x1b[Ksaved a checkpoint\n\x1b[KEpoch {epoch}/3\n\x1b[KBatch [##########] {step}/100\n"
        )
    };
    for epoch in 1..=3 {
        for step in [0, 50, 50, 100] {
            text.push_str(&frame(epoch, step));
        }
    }
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    let marks = reader.feed(Stream::Out, None, text.as_bytes());
    for epoch in 1..=3 {
        for step in [0, 50, 100] {
            let fits = |m: &Mark| m.epoch == Some(f64::from(epoch)) && m.step == Some(step);
            assert!(
                marks.iter().any(fits),
                "{step} of epoch {epoch}: {marks:#?}"
            );
        }
    }
    // A block that only moved down is no progress.
    let before = marks.len();
    let moved: String = (0..5).map(|_| frame(3, 100)).collect();
    let more = reader.feed(Stream::Out, None, moved.as_bytes());
    assert!(before > 8 && more.is_empty(), "{more:#?}");
}

/// The step's line stays as it was while the epoch's line above it changes.
#[test]
fn a_step_that_stays_under_another_epoch_is_kept() {
    let frame = |epoch| format!("\x1b[2AEpoch {epoch}/3\n\x1b[KBatch 100/100\n");
    let text = format!("Epoch 1/3\nBatch 100/100\n{}", frame(2));
    let mut reader = ProgressReader::new(Layout::Plain, Layout::Plain);
    reader.feed(Stream::Out, None, text.as_bytes());
    let state = reader.state();
    assert_eq!((state.epoch, state.step), (Some(2.0), Some(100)));
}
