//! The texts of `/proc`, of cgroups and of pressure files: numbers or nothing.
#![no_main]

use gpuwatch::observe::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some((_, name)) = parse::stat(data) {
        assert!(name.len() + 2 < data.len());
    }
    if let Some(n) = parse::number(data) {
        assert!(data.iter().all(u8::is_ascii_digit));
        assert_eq!(parse::number(n.to_string().as_bytes()), Some(n));
    }
    parse::statm(data);
    parse::io(data);
    parse::last_pid(data);
    parse::uptime_centis(data);
    parse::cpu_times(data);
    parse::pressure_some_us(data);
    parse::quota(data);
    parse::keyed(data, b"VmRSS");
    for word in parse::words(data) {
        assert!(!word.is_empty() && word.len() <= data.len());
    }
});
