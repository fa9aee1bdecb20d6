//! A job that trains on a simulated GPU, hangs when it is told to, and goes on.

use std::time::Instant;

use serde_json::{Value, json};

use super::support::fake_driver::python_path;
use super::support::http_server::{Request, Server};
use super::support::{FakeDriver, Job, Live, Sandbox, python, wait_until};

/// What the job does, told by files in its folder: `hang`, then `on`, then `end`.
const SCRIPT: &str = r#"
import os, sys, time
import fake_gpu

how = sys.argv[1]
folder = os.getcwd()
# A failed test takes the folder away: nothing is left running.
said = lambda name: os.path.exists(name) or not os.path.isdir(folder)
reader, writer = os.pipe()
step = 0

def next_batch():
    return os.read(reader, 1)

def wait_for_kernel():
    while not said("on"):
        for _ in range(100_000):
            pass

def loader():
    while not said("on"):
        time.sleep(0.2)
    os.write(writer, b"x")
    os._exit(0)

def train_until(name):
    global step
    while not said(name):
        step += 1
        print(f"epoch 1/2 step {step}/1000 loss {1 / step:.4f}", flush=True)
        time.sleep(0.1)

fake_gpu.hold(0, 6144)
fake_gpu.use(0, 100, 40)
train_until("hang")
fake_gpu.use(0, 100 if how == "spin" else 0, 0)
if how == "asleep" and os.fork() == 0:
    loader()
with open("hung.new", "w") as file:
    print(step, file=file)
os.rename("hung.new", "hung")
wait_for_kernel() if how == "spin" else next_batch()
fake_gpu.use(0, 100, 40)
train_until("end")
print("over", flush=True)
sys.exit(int(sys.argv[2]))
"#;

/// Such a job, watched.
pub struct Training {
    pub sandbox: Sandbox,
    pub driver: FakeDriver,
    how: &'static str,
}

impl Training {
    /// `how` it hangs: `spin` or `asleep`.
    pub fn new(how: &'static str) -> Self {
        let sandbox = Sandbox::new();
        std::fs::write(sandbox.path("train.py"), SCRIPT).unwrap();
        Self {
            sandbox,
            driver: FakeDriver::new(&machine(300, 2000)),
            how,
        }
    }

    /// Watched with these options, ending with this code.
    pub fn job(&self, options: &[&str], code: u8) -> Job {
        let script = self.sandbox.arg("train.py");
        let argv = [python(), &script, self.how, &code.to_string()];
        self.sandbox
            .watched(options, &argv)
            .with(&self.driver)
            .env("PYTHONPATH", python_path())
    }

    /// Waits for the training to be seen, then has it hang. Returns since when, and at which
    /// step.
    pub fn hang(&self) -> (Instant, u64) {
        wait_until("progress is seen", || {
            let rows = self.sandbox.samples_so_far();
            rows.iter().filter(|r| !r["step"].is_empty()).count() >= 3
        });
        // A GPU that waits draws little and moves nothing, however busy it says that it is.
        self.driver.set(&machine(60, 0));
        self.say("hang");
        let step = super::support::content(&self.sandbox.path("hung"));
        (Instant::now(), step.parse().unwrap())
    }

    /// The hang is over.
    pub fn go_on(&self) {
        self.driver.set(&machine(300, 2000));
        self.say("on");
    }

    pub fn say(&self, word: &str) {
        std::fs::write(self.sandbox.path(word), "").unwrap();
    }
}

fn machine(power_w: u32, pcie_mb_s: u32) -> Value {
    json!({"gpus": [{"power_w": power_w, "power_limit_w": 400, "pcie_mb_s": pcie_mb_s}]})
}

/// Waits until the run has been sampled for so long.
pub fn sampled_until(sandbox: &Sandbox, seconds: f64) {
    wait_until("the run has lasted", || latest(sandbox) >= seconds);
}

/// When the last sample was taken, in seconds of the run.
pub fn latest(sandbox: &Sandbox) -> f64 {
    let rows = sandbox.samples_so_far();
    rows.last()
        .map_or(0.0, |row| row["elapsed_s"].parse().unwrap())
}

/// Waits for an alert of this type and state.
pub fn alert(server: &Server, kind: &str, state: &str) -> Request {
    let find = || {
        let requests = server.requests();
        requests.into_iter().find(|r| is(r, kind, &json!(state)))
    };
    let mut found = None;
    wait_until(&format!("{kind} is {state}"), || {
        found = find();
        found.is_some()
    });
    found.unwrap()
}

fn is(request: &Request, kind: &str, state: &Value) -> bool {
    let body = request.json();
    body["type"] == kind && body["data"]["state"] == *state
}

/// `type state` of all alerts.
pub fn kinds(server: &Server) -> Vec<String> {
    let word = |v: &Value| v.as_str().unwrap_or("-").to_owned();
    server
        .requests()
        .iter()
        .map(|r| {
            let body = r.json();
            format!("{} {}", word(&body["type"]), word(&body["data"]["state"]))
        })
        .collect()
}

/// `name severity state` of all findings that are more than notes.
pub fn alarms(sandbox: &Sandbox) -> Vec<String> {
    let word = |v: &Value| v.as_str().unwrap().to_owned();
    let mut findings = sandbox.record().events_of("finding");
    findings.retain(|f| f["severity"] != "note");
    let said = |f: &Value| ["name", "severity", "state"].map(|k| word(&f[k])).join(" ");
    findings.iter().map(said).collect()
}

/// The notes among the findings that were raised.
pub fn notes(sandbox: &Sandbox) -> Vec<String> {
    let mut findings = sandbox.record().events_of("finding");
    findings.retain(|f| f["severity"] == "note" && f["state"] == "raised");
    let name = |f: &Value| f["name"].as_str().unwrap().to_owned();
    findings.iter().map(name).collect()
}

/// The end of a job that was told to end, with this code.
pub fn end(live: Live, code: i32) -> super::support::Ended {
    let ended = live.end();
    assert_eq!(ended.code(), Some(code), "{}", ended.err());
    ended
}
