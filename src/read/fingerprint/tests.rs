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

proptest! {
    #[test]
    fn cutting_does_not_matter(
        parts in prop::collection::vec(prop_oneof![
            Just("Traceback (most recent call last):\n".to_owned()),
            Just("  File x\n".to_owned()),
            Just("ValueError: bad\r\n".to_owned()),
            Just("(Pdb) ".to_owned()),
            Just("Go on [y/N] ".to_owned()),
            Just("CUDA out of memory. Tried to allocate\n".to_owned()),
            Just("\x1b[31mstep 1\x1b[0m\r".to_owned()),
            "[ -~\n\r\t]{0,30}",
        ], 0..12),
        cuts in prop::collection::vec(0usize..400, 0..8),
    ) {
        let text = parts.concat();
        let whole = {
            let mut lines = Lines::new();
            let mut all = lines.feed(Stream::Out, text.as_bytes());
            all.extend(lines.feed(Stream::Out, b"\n"));
            all
        };
        let mut lines = Lines::new();
        let mut all = Vec::new();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(text.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for cut in cuts.into_iter().chain([text.len()]) {
            all.extend(lines.feed(Stream::Out, &text.as_bytes()[from..cut]));
            from = cut;
        }
        all.extend(lines.feed(Stream::Out, b"\n"));
        prop_assert_eq!(all, whole);
    }
}
