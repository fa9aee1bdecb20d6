//! What real lines say, and what healthy ones don't.

use proptest::prelude::*;

use super::*;
use crate::model::Stream;

fn lines(text: &str) -> Vec<String> {
    let mut lines = Lines::new();
    lines.feed(Stream::Out, text.as_bytes())
}

#[test]
fn errors_are_known() {
    let cases = [
        (
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 79.25 GiB. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF",
            Kind::OomTorch,
        ),
        (
            "WARNING: CUDA out of memory, skipping batch",
            Kind::OomTorch,
        ),
        (
            "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:",
            Kind::OomTensorFlow,
        ),
        (
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory allocating 70368744177664 bytes.",
            Kind::OomJax,
        ),
        (
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            Kind::OomCublas,
        ),
        (
            "[rank1]:[E1130 12:10:33.711234567 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=128, OpType=ALLREDUCE",
            Kind::CollectiveTimeout,
        ),
        (
            "torch.AcceleratorError: CUDA error: device-side assert triggered",
            Kind::DeviceAssert,
        ),
        (
            "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
            Kind::SharedMemory,
        ),
        (
            "RuntimeError: DataLoader worker (pid 2868) is killed by signal: Killed. ",
            Kind::LoaderOom,
        ),
        ("OSError: [Errno 28] No space left on device", Kind::Disk),
        (
            "2026-11-30 12:00:02.720442: W tensorflow/core/common_runtime/gpu/gpu_device.cc:1850] Cannot dlopen some GPU libraries. Please make sure the missing libraries mentioned above are installed properly if you would like to use GPU.",
            Kind::NoiseNoLibrary,
        ),
        ("Skipping registering GPU devices...", Kind::NoiseNoLibrary),
        (
            "E0000 cuda_platform.cc:52] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: UNKNOWN ERROR (303)",
            Kind::NoiseNoDriver,
        ),
        (
            "AssertionError: Torch not compiled with CUDA enabled",
            Kind::CpuBuild,
        ),
        ("Fatal Python error: Segmentation fault", Kind::Segfault),
        ("(Pdb) ", Kind::Prompt),
        ("KeyError: 'label'", Kind::Exception),
        ("[rank0]: ValueError: x", Kind::Exception),
    ];
    for (text, kind) in cases {
        assert_eq!(fingerprint(text), Some(kind), "{text}");
    }
}

#[test]
fn the_start_of_tensorflow_is() {
    let text = "I0000 00:00:1796070155.923648   14333 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU instructions in performance-critical operations.";
    assert_eq!(fingerprint(text), Some(Kind::TensorFlowStarted));
}

#[test]
fn healthy_lines_are_not() {
    for text in [
        "If you see CUDA out of memory, reduce the batch size",
        "Note: gradient checkpointing helps to avoid CUDA out of memory errors",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "2026 W external/xla/tsl/framework/bfc_allocator.cc:501] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.0GiB. The caller indicates that this is not a failure",
        "Epoch 1/5: 50%|#####     | 5/10 [00:01<00:01,  9.54it/s, loss=0.5308]",
        "Killed",
        "Assertion coverage: 100%",
        "loss nan_to_num enabled",
        "Found 3 errors in config: none fatal",
        "retrying: Connection reset by peer",
        "",
    ] {
        assert_eq!(fingerprint(text), None, "{text}");
    }
}

#[test]
fn a_traceback_gives_its_last_line() {
    let text = "step 1\nValueError: only logged\nTraceback (most recent call last):\n  File \"a.py\", line 1\n    x\nRuntimeError: bad batch 24\nValueError: logged again\n";
    assert_eq!(
        lines(text),
        [
            "Traceback (most recent call last):",
            "RuntimeError: bad batch 24"
        ]
    );
    let ranked = "[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a\"\n[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB\n";
    assert_eq!(lines(ranked).len(), 2);
}

#[test]
fn colours_and_redrawn_bars_are_seen_through() {
    let text = "\x1b[2K 5%|#\r 6%|#\r\x1b[1;31mtorch.OutOfMemoryError: CUDA out of memory. Tried to allocate\x1b[0m 2 GiB\r\n";
    assert_eq!(
        lines(text),
        ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"]
    );
}

#[test]
fn a_prompt_is_told_before_its_line_ends() {
    let mut lines = Lines::new();
    assert_eq!(
        lines.feed(Stream::Out, b"> a.py(3)<module>()\n-> x = 1\n(Pdb) "),
        ["(Pdb) "]
    );
    assert_eq!(lines.feed(Stream::Out, b"> a.py(4)\n"), [""; 0]);
    assert_eq!(
        lines.feed(Stream::Out, b"Proceed ([y/N])? "),
        ["Proceed ([y/N]"]
    );
    // Also where much follows in the same piece.
    let text = format!("\nGo on [y/N] {}", "and more ".repeat(100));
    assert_eq!(lines.feed(Stream::Out, text.as_bytes()), ["Go on [y/N]"]);
}

#[test]
fn a_flood_of_one_kind_is_thinned_out_and_long_lines_are_bounded() {
    let flood = "CUDA out of memory. Tried to allocate 1 GiB\n".repeat(6400);
    assert_eq!(lines(&flood).len(), 64 + 99);
    let long = format!("CUDA error: out of memory {}\n", "é".repeat(100_000));
    let found = lines(&long);
    assert_eq!(found.len(), 1);
    assert!(found[0].len() <= 2000);
}

/// All that is told, and what is quoted.
fn read(pieces: &[&[u8]]) -> (Vec<String>, Vec<(Source, String)>, Vec<Quote>) {
    let mut lines = Lines::new();
    let mut told = Vec::new();
    for piece in pieces {
        told.extend(lines.feed(Source::File(3), piece));
    }
    (told, lines.finish(), lines.quotes())
}

#[test]
fn a_line_is_quoted_with_what_stands_around_it() {
    let text = "step 1\n 5%|#\r 6%|#\rTraceback (most recent call last):\n  File \"a.py\", line 1\n\
                \x1b[31mKeyError: 'lr'\x1b[0m\n\n[rank1]: other\r\nat exit\nbar 1\rbar 2\rbar 3\nend";
    let (told, unended, quotes) = read(&[text.as_bytes()]);
    assert_eq!(told.len(), 2);
    assert!(unended.is_empty());
    assert_eq!(quotes.len(), 1);
    assert_eq!(quotes[0].text, "KeyError: 'lr'");
    assert_eq!(
        quotes[0].lines(),
        [
            "step 1",
            "Traceback (most recent call last):",
            "  File \"a.py\", line 1",
            "KeyError: 'lr'",
            "[rank1]: other",
            "at exit",
            "bar 3",
            "end",
        ]
    );
    // On a terminal, where lines end twice.
    let text = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let (_, _, on_terminal) = read(&[text.as_bytes()]);
    assert_eq!(on_terminal[0].lines(), quotes[0].lines());
    let (_, _, both) = read(&[b"[Errno 28]\r\n[Errno 116]\r\nend\r\n"]);
    let both: Vec<_> = both.iter().map(Quote::lines).collect();
    let all = ["[Errno 28]", "[Errno 116]", "end"];
    assert_eq!(both, [all, all]);
    // Of a rank what it printed itself.
    let text = "[rank0] step 1\n[rank1] step 1\nplain\n[rank1]: ValueError: CUDA out of memory. Tried to allocate\n[rank0] step 2\n[rank1]: the end\n";
    let (_, _, quotes) = read(&[text.as_bytes()]);
    assert_eq!(
        quotes[0].lines(),
        [
            "[rank1] step 1",
            "plain",
            "[rank1]: ValueError: CUDA out of memory. Tried to allocate",
            "[rank1]: the end",
        ]
    );
}

#[test]
fn a_last_line_without_an_end_counts_and_a_file_begins_anew() {
    let (told, unended, quotes) = read(&[b"[Errno 122] Disk quota ", b"exceeded"]);
    let text = "[Errno 122] Disk quota exceeded".to_owned();
    assert_eq!((told.len(), unended), (0, vec![(Source::File(3), text)]));
    assert_eq!(quotes.len(), 1);
    let mut lines = Lines::new();
    lines.feed(Source::File(0), b"half of [Errno 1");
    lines.turn(Source::File(0));
    assert!(lines.feed(Source::File(0), b"22] Disk\n").is_empty());
}

proptest! {
    #[test]
    fn cutting_does_not_matter(
        parts in prop::collection::vec(prop_oneof![
            Just("Traceback (most recent call last):\n".to_owned()),
            Just("  File x\n".to_owned()),
            Just("ValueError: bad\r\n".to_owned()),
            Just("[rank1]: KeyError: bad\n".to_owned()),
            Just("(Pdb) ".to_owned()),
            Just("Go on [y/N] ".to_owned()),
            Just("CUDA out of memory. Tried to allocate\n".to_owned()),
            Just("[rank0]: [Errno 28]\n".to_owned()),
            Just("\x1b[31mstep 1\x1b[0m\r".to_owned()),
            Just("long ".repeat(1200)),
            "[ -~\n\r\t]{0,30}",
        ], 0..24),
        cuts in prop::collection::vec(0usize..8000, 0..12),
    ) {
        let text = parts.concat();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            pieces.push(&text.as_bytes()[from..cut]);
            from = cut;
        }
        prop_assert_eq!(read(&pieces), read(&[text.as_bytes()]));
    }

    /// But for the last line of a traceback, which is one only there.
    #[test]
    fn what_a_line_says_does_not_depend_on_its_neighbours(
        lines in prop::collection::vec(prop_oneof![
            Just("[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1".to_owned()),
            Just("Traceback (most recent call last):".to_owned()),
            Just("  File \"a.py\", line 1".to_owned()),
            Just("Root Cause (first observed failure):".to_owned()),
            Just("  rank      : 1 (local_rank: 1)".to_owned()),
            Just("Exception ignored in: <f>".to_owned()),
            Just("3: OSError: [Errno 116] Stale file handle".to_owned()),
            Just("RuntimeError: CUDA error: invalid device ordinal".to_owned()),
            "[ -~]{0,40}",
        ], 0..40),
    ) {
        let other = |text: &&String| {
            let kind = fingerprint(text);
            kind.is_some_and(|kind| !matches!(kind, Kind::Exception | Kind::Prompt))
        };
        let alone: Vec<String> = lines.iter().filter(other).cloned().collect();
        let (mut told, _, _) = read(&[(lines.join("\n") + "\n").as_bytes()]);
        told.retain(|text| other(&text));
        prop_assert_eq!(told, alone);
    }

    #[test]
    fn whatever_is_printed_is_bounded_and_clean(
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..60),
            Just(b"ValueError: CUDA out of memory. Tried to allocate".to_vec()),
            Just(b"\nTraceback (most recent call last):\n".to_vec()),
            Just(vec![b'x'; 9000]),
            Just("\n训练\r".as_bytes().to_vec()),
        ], 0..30),
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let (told, unended, quotes) = read(&pieces);
        for text in told.iter().chain(unended.iter().map(|(_, text)| text)) {
            prop_assert!(text.len() <= 2000 && !text.contains(char::is_control));
        }
        for quote in quotes {
            let lines = quote.lines();
            prop_assert!((1..=13).contains(&lines.len()));
            for line in lines {
                prop_assert!(line.chars().count() <= 240 && !line.contains(char::is_control));
            }
        }
    }
}
