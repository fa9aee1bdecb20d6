//! What is written is what is read back, rounded.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use super::*;
use crate::model::{
    GpuInfo, GpuProcess, GpuSample, HostSample, JobSample, Metric, ProgressState, Reading, Sample,
    Stamp, Throttle, Why,
};

fn read_text(text: &str) -> Vec<Sample> {
    SampleReader::new(text.as_bytes(), PathBuf::from("samples.csv"), &[])
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

fn round_trip(samples: &[Sample], gpus: &[GpuInfo]) -> Vec<Sample> {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SampleWriter::create(dir.path()).unwrap();
    writer.name_gpus(gpus);
    for sample in samples {
        writer.append(sample).unwrap();
    }
    SampleReader::open(dir.path(), gpus)
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// NaN equals NaN here, which `==` denies.
fn same(a: &Sample, b: &Sample) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn reading<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Reading<T>> {
    prop_oneof![
        3 => value.prop_map(Reading::Value),
        1 => Just(Reading::Missing(Why::NotSupported)),
        1 => Just(Reading::default()),
    ]
    .boxed()
}

fn float() -> BoxedStrategy<f64> {
    prop_oneof![
        6 => 0.0..100.0,
        2 => -1e3..1e7,
        1 => any::<f64>(),
        1 => (0_u32..100_000).prop_map(f64::from),
    ]
    .boxed()
}

prop_compose! {
    fn gpu(index: u32)(
        f in vec(reading(float()), 12),
        throttle in reading(any::<u64>().prop_map(Throttle)),
        ecc in reading(any::<u64>()),
    ) -> GpuSample {
        GpuSample {
            index,
            mig: None,
            util_pct: f[0].clone(),
            mem_util_pct: f[1].clone(),
            mem_used_mib: f[2].clone(),
            mem_total_mib: f[3].clone(),
            temp_c: f[4].clone(),
            power_w: f[5].clone(),
            power_limit_w: f[6].clone(),
            energy_total_j: f[7].clone(),
            sm_clock_mhz: f[7].clone(),
            throttle,
            pcie_mb_s: f[8].clone(),
            ecc_uncorrected_total: ecc,
            sm_active_pct: f[9].clone(),
            tensor_active_pct: f[10].clone(),
            dram_active_pct: f[11].clone(),
            processes: Reading::Value(vec![GpuProcess {
                pid: 1,
                mem_mib: f[0].clone(),
                sm_pct: f[1].clone(),
                compute: true,
                mps_server: false,
            }]),
        }
    }
}

prop_compose! {
    fn job()(n in vec(reading(any::<u32>()), 8), f in vec(reading(float()), 8)) -> JobSample {
        JobSample {
            procs: n[0].clone(),
            n_run: n[1].clone(),
            n_sleep: n[2].clone(),
            n_disk: n[3].clone(),
            n_zombie: n[4].clone(),
            n_stopped: n[5].clone(),
            n_busy: n[6].clone(),
            cpu_cores: f[0].clone(),
            main_cores: f[1].clone(),
            rss_mib: f[2].clone(),
            anon_mib: f[3].clone(),
            shmem_mib: f[4].clone(),
            read_mb_s: f[5].clone(),
            write_mb_s: f[6].clone(),
            majflt_s: f[7].clone(),
            forks: n[7].clone(),
        }
    }
}

prop_compose! {
    fn progress()(f in vec(option::of(float()), 7), n in vec(option::of(any::<u64>()), 2))
        -> ProgressState {
        ProgressState {
            epoch: f[0],
            epochs: f[1],
            step: n[0],
            steps: n[1],
            percent: f[2],
            loss: f[3].map(Metric),
            rate: f[4],
            overall_pct: f[5],
            eta_s: f[6],
        }
    }
}

prop_compose! {
    fn sample()(n in 0_u32..4)(
        elapsed_s in float(),
        gpus in (0..n).map(gpu).collect::<Vec<_>>(),
        per_gpu in vec(reading(float()), 0..6),
        ecc in vec(reading(any::<u64>()), 0..6),
        job in job(),
        host in vec(reading(float()), 4),
        out_bytes in any::<u64>(),
        progress in progress(),
    ) -> Sample {
        Sample {
            stamp: Stamp { time: "2026-11-30T09:15:02.002+08:00".into(), elapsed_s },
            gpus,
            job_mem_mib: per_gpu.clone(),
            job_sm_pct: per_gpu.clone(),
            energy_j: per_gpu,
            ecc_uncorrected: ecc,
            job,
            host: HostSample {
                cpu_pct: host[0].clone(),
                io_pressure_pct: host[1].clone(),
                cpu_throttled_pct: host[2].clone(),
                mem_limit_mib: host[3].clone(),
            },
            out_bytes,
            progress,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_back_is_what_the_judge_was_fed(samples in vec(sample(), 0..4)) {
        let read = round_trip(&samples, &[]);
        prop_assert_eq!(read.len(), samples.len());
        for (read, sample) in read.iter().zip(&samples) {
            prop_assert!(same(read, &rounded(sample)), "{:?}\n{:?}", read, rounded(sample));
            prop_assert!(same(&rounded(read), read), "rounding twice is rounding once");
        }
    }

    #[test]
    fn no_file_makes_the_reader_panic(text in "(elapsed_s|gpu|time|[0-9.,\"\n-]|nan|\\PC){0,200}") {
        let header = "time,elapsed_s,gpu,power_w\n";
        let _ = read_text(&format!("{header}{text}\n"));
        let _ = read_text(&text);
    }
}

#[test]
fn the_example_is_read() {
    let dir = Path::new("tests/example-run");
    let header = fs::read_to_string(dir.join(SAMPLES)).unwrap();
    assert_eq!(header.lines().next().unwrap(), COLUMNS.join(","));
    let samples: Vec<Sample> = SampleReader::open(dir, &[])
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(samples.len(), header.lines().count() - 1);
    let first = &samples[0];
    assert_eq!(first.stamp.elapsed_s.to_bits(), 0.002_f64.to_bits());
    assert_eq!(first.gpus[0].index, 2);
    assert_eq!(first.gpus[0].throttle, Reading::Value(Throttle(1)));
    assert_eq!(first.job_mem_mib, [Reading::default()]);
    assert_eq!(first.gpus[0].sm_active_pct, Reading::default());
    assert_eq!(first.progress, ProgressState::default());
    let last = samples.last().unwrap();
    let tick = last_tick(dir).unwrap().unwrap();
    assert_eq!(
        (tick.time, tick.elapsed_s),
        (last.stamp.time.clone(), last.stamp.elapsed_s)
    );
    // What was read is written as it was, byte for byte but for `5.0` and the like.
    for (read, again) in samples.iter().zip(round_trip(&samples, &[])) {
        assert_eq!(*read, again);
    }
}

#[test]
fn columns_go_by_name_and_torn_lines_are_skipped() {
    let text = "elapsed_s,future,power_w,gpu,loss\n\
                1,x,50,0,nan\n\
                1,x,60,1,nan\n\
                2,x,\n\
                3,x,,0,inf\n\
                garbage\"\n\
                soon,x,70,0,\n\
                4,x,\"80\",0,-0.5,more\n\
                5,x,9";
    let samples = read_text(text);
    let seconds: Vec<f64> = samples.iter().map(|s| s.stamp.elapsed_s).collect();
    assert_eq!(seconds, [1.0, 3.0, 4.0]);
    assert_eq!(samples[0].gpus.len(), 2);
    assert_eq!(samples[0].gpus[1].power_w, Reading::Value(60.0));
    assert!(samples[0].progress.loss.unwrap().0.is_nan());
    assert_eq!(samples[1].gpus[0].power_w, Reading::default());
    assert_eq!(samples[1].progress.loss, Some(Metric(f64::INFINITY)));
    assert_eq!(samples[2].gpus[0].power_w, Reading::Value(80.0));
    assert_eq!(samples[2].job.procs, Reading::default());
}

#[test]
fn two_looks_within_a_millisecond_stay_two() {
    let one = Sample {
        gpus: vec![GpuSample::default()],
        ..Sample::default()
    };
    let none = Sample::default();
    for looks in [[&one, &one], [&none, &none], [&one, &none], [&none, &one]] {
        let looks: Vec<Sample> = looks.into_iter().cloned().collect();
        assert_eq!(round_trip(&looks, &[]).len(), 2);
    }
}

#[test]
fn a_mig_device_goes_by_its_name() {
    let gpus = [GpuInfo {
        index: 7,
        uuid: Some("MIG-41b36a63".into()),
        ..GpuInfo::default()
    }];
    let sample = Sample {
        gpus: vec![
            GpuSample::default(),
            GpuSample {
                index: 7,
                mig: Some("MIG-41b36a63".into()),
                ..GpuSample::default()
            },
        ],
        ..Sample::default()
    };
    let read = round_trip(std::slice::from_ref(&sample), &gpus);
    assert!(same(&read[0], &rounded(&sample)));
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SampleWriter::create(dir.path()).unwrap();
    writer.name_gpus(&gpus);
    writer.append(&sample).unwrap();
    let text = fs::read_to_string(dir.path().join(SAMPLES)).unwrap();
    assert!(text.lines().nth(2).unwrap().starts_with(",0,MIG-41b36a63,"));
    // Without the run.json the name still tells the two apart.
    let alone: Vec<_> = SampleReader::open(dir.path(), &[]).unwrap().collect();
    assert_eq!(alone[0].as_ref().unwrap().gpus.len(), 2);
}

#[test]
fn numbers_are_written_as_people_write_them() {
    let sample = Sample {
        stamp: Stamp {
            time: "t".into(),
            elapsed_s: 1.002_4,
        },
        gpus: vec![GpuSample {
            util_pct: Reading::Value(94.96),
            power_w: Reading::Value(310.249),
            power_limit_w: Reading::Value(400.0),
            throttle: Reading::Value(Throttle(0)),
            mem_util_pct: Reading::Value(-0.01),
            ..GpuSample::default()
        }],
        progress: ProgressState {
            loss: Some(Metric(f64::NAN)),
            rate: Some(1e-9),
            ..ProgressState::default()
        },
        ..Sample::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let mut writer = SampleWriter::create(dir.path()).unwrap();
    writer.append(&sample).unwrap();
    let text = fs::read_to_string(dir.path().join(SAMPLES)).unwrap();
    assert_eq!(
        text.lines().nth(1).unwrap(),
        format!(
            "t,1.002,0,95,0,,,,,,310.2,400,,,none,,,,,{}0,,,,,,nan,1e-9,,",
            ",".repeat(21)
        )
    );
}

/// A run's samples, compressed as these frames.
fn packed(frames: &[&[u8]]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let pack = |rows: &&[u8]| compress_to_vec(*rows, CompressionLevel::Fastest);
    let bytes = frames.iter().map(pack).collect::<Vec<_>>().concat();
    fs::write(dir.path().join(PACKED), bytes).unwrap();
    dir
}

#[test]
fn compressed_samples_are_read_whatever_their_frames() {
    let row = |t| format!("{t},0,100.5\n");
    let rows = (0..5000).map(row).collect::<Vec<_>>().concat();
    let text = format!("elapsed_s,gpu,power_w\n{rows}");
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    let plain = tempfile::tempdir().unwrap();
    fs::write(plain.path().join(SAMPLES), &text).unwrap();
    let read = |dir: &Path| -> Vec<Sample> {
        let reader = SampleReader::open(dir, &[]).unwrap();
        reader.map(Result::unwrap).collect()
    };
    let wanted = read(plain.path());
    assert_eq!(wanted.len(), 5000);
    for frames in [
        &[text.as_bytes()][..],
        &[first, second],
        &[first, b"", second],
    ] {
        let dir = packed(frames);
        assert!(has_samples(dir.path()));
        assert_eq!(read(dir.path()), wanted);
        let last = last_tick(dir.path()).unwrap().unwrap();
        assert_eq!(last.elapsed_s.to_bits(), 4999.0_f64.to_bits());
    }
    let empty = packed(&[]);
    assert_eq!(read(empty.path()), []);
    // What still grows goes before what was made of it.
    let both = packed(&[b"elapsed_s\n1\n"]);
    fs::write(both.path().join(SAMPLES), "elapsed_s\n1\n2\n").unwrap();
    assert_eq!(read(both.path()).len(), 2);
}

#[test]
fn damage_to_compressed_samples_is_noticed() {
    let row = |t| format!("{t},{}\n", t * 37 % 101);
    let rows: Vec<String> = (0..2000).map(row).collect();
    let rows = rows.concat();
    let dir = packed(&[format!("elapsed_s,host_cpu_pct\n{rows}").as_bytes()]);
    let path = dir.path().join(PACKED);
    let whole = fs::read(&path).unwrap();
    let said = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let read = SampleReader::open(dir.path(), &[])
            .and_then(|mut rows| rows.try_for_each(|r| r.map(drop)));
        read.map_err(|e| e.to_string())
    };
    assert_eq!(said(&whole), Ok(()));
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 0x10;
    for damaged in [
        &whole[..whole.len() / 2],
        &whole[..2],
        b"elapsed_s\n1\n",
        &flipped,
    ] {
        let said = said(damaged).unwrap_err();
        assert!(
            said.contains("samples.csv.zst: it is damaged, or not compressed"),
            "{said}"
        );
    }
}

#[test]
fn a_run_without_samples_lacks_the_file_that_everybody_knows() {
    let dir = tempfile::tempdir().unwrap();
    assert!(!has_samples(dir.path()));
    let said = SampleReader::open(dir.path(), &[])
        .err()
        .unwrap()
        .to_string();
    assert!(said.contains("samples.csv: No such file"), "{said}");
}
