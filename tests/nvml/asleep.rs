//! What the bus alone says of GPUs: which sleep, and which number the host gives them.

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::fake_driver::FakeDriver;

/// Puts another bus, with two GPUs in this state, in place of the machine's.
const BUS: &str = "mount -t tmpfs none /sys/bus/pci/devices && cd /sys/bus/pci/devices
for bus in 0000:03:00.0 0000:1a:00.0; do
  mkdir -p $bus/power && echo 0x10de >$bus/vendor && echo 0x030000 >$bus/class
  echo $1 >$bus/power/runtime_status && ln -s ../drivers/nvidia $bus/driver
done
cd \"$2\" && shift 2 && exec \"$@\"";

#[test]
fn a_gpu_that_sleeps_is_woken_by_whoever_asks_and_not_by_watching() {
    for (state, woken) in [("suspended", false), ("active", true)] {
        let sandbox = Sandbox::new();
        let driver = FakeDriver::new(&json!({"gpus": [{"pci_bus": 0x1a}]}));
        let calls = driver.scenario().with_file_name("calls");
        let work = sandbox.arg("");
        let under = ["unshare", "-rm", "sh", "-c", BUS, "sh", state, &work];
        let ended = sandbox
            .watched(&["--interval", "100ms"], &["sleep", "1"])
            .with(&driver)
            .env("CUDA_VISIBLE_DEVICES", "0")
            .env("FAKE_NVML_CALLS", &calls)
            .under(&under)
            .run();
        ended.assert_ok();
        assert_eq!(calls.exists(), woken, "{state}");
        let listed = sandbox
            .gpuwatch(&["gpus", "--json"])
            .with(&driver)
            .under(&under)
            .run();
        let listed: Value = serde_json::from_str(&listed.assert_ok().out()).unwrap();
        let gpu = &listed["gpus"][0];
        assert_eq!(gpu["index"], 0);
        assert_eq!(gpu["host_index"], 1, "the bus shows another before it");
        assert_eq!(gpu["pci_bus"], "00000000:1A:00.0");
    }
}
