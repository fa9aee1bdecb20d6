//! What goes wrong while it runs.

use std::fs;

use gpuwatch::model::{Reading, Why};
use gpuwatch::nvml::health::Health;
use gpuwatch::nvml::protocol::{FromHelper, ToHelper, Watched};
use serde_json::json;

use crate::gpus::gpus_json;
use crate::harness::{Helper, at_work, fault, wait_until};
use crate::support::fake_driver::FakeDriver;

#[test]
fn a_gpu_that_falls_off_the_bus_and_comes_back() {
    let two = json!({"gpus": [{}, {}]});
    let driver = FakeDriver::new(&two);
    let mut helper = Helper::watching(&driver);
    let mut health = Health::new();
    let mut said = Vec::new();
    let hear = |helper: &mut Helper, health: &mut Health, said: &mut Vec<String>, lost: bool| {
        helper.until(|message| {
            let events = health.hear(message);
            said.extend(
                events
                    .iter()
                    .map(|e| serde_json::to_string(e).unwrap())
                    .filter(|e| e.contains("\"gpu\"")),
            );
            match message {
                FromHelper::Tick { gpus, .. } => {
                    let gone = gpus[1].temp_c == Reading::Missing(Why::Lost);
                    assert!(gpus[0].temp_c.get().is_some());
                    (gone == lost).then_some(())
                }
                _ => None,
            }
        });
    };
    hear(&mut helper, &mut health, &mut said, false);
    driver.set(&fault(
        &two,
        &json!({"call": "nvmlDevice*", "gpu": 1, "code": 15}),
    ));
    hear(&mut helper, &mut health, &mut said, true);
    hear(&mut helper, &mut health, &mut said, true);
    driver.set(&two);
    hear(&mut helper, &mut health, &mut said, false);
    hear(&mut helper, &mut health, &mut said, false);
    assert_eq!(
        said,
        [
            r#"{"kind":"gpu","gpu":1,"change":"lost"}"#,
            r#"{"kind":"gpu","gpu":1,"change":"recovered"}"#
        ]
    );
}

#[test]
fn a_gpu_that_was_lost_at_the_start_is_listed_and_comes_back() {
    let two = json!({"gpus": [{}, {}]});
    let driver = FakeDriver::new(&fault(
        &two,
        &json!({"call": "nvmlDevice*", "gpu": 1, "code": 15}),
    ));
    assert_eq!(gpus_json(&driver)["gpus"][1]["state"], "lost");
    let mut helper = Helper::start(&driver);
    let inventory = helper.inventory();
    assert_eq!((inventory.gpus.len(), &inventory.gpus[1].uuid), (2, &None));
    helper.watch(20);
    helper.tick(|gpus| gpus[1].util_pct == Reading::Missing(Why::Lost));
    driver.set(&two);
    helper.tick(|gpus| {
        gpus[1].util_pct == Reading::Value(0.0) && gpus[1].power_limit_w.get().is_some()
    });
}

#[test]
fn a_call_that_hangs_is_reported_and_its_end_too() {
    let driver = FakeDriver::new(&at_work());
    let mut helper = Helper::watching(&driver);
    helper.tick(|_| true);
    driver.set(&fault(
        &at_work(),
        &json!({"call": "nvmlDeviceGetPowerUsage", "hang": "until_removed", "after_calls": 3}),
    ));
    let (call, gpu, for_s) = helper.until(|message| match message {
        FromHelper::Stuck { call, gpu, for_s } => Some((call.clone(), *gpu, *for_s)),
        _ => None,
    });
    assert_eq!((call.as_str(), gpu), ("nvmlDeviceGetPowerUsage", Some(0)));
    assert!(for_s > 3.0, "{for_s}");
    // The main thread is as alive as before.
    helper.say(&ToHelper::Consume { signal: 10 });
    driver.set(&at_work());
    assert_eq!(helper.next(), FromHelper::Unstuck);
    helper.tick(|gpus| gpus[0].power_w.get().is_some());
}

#[test]
fn a_hung_helper_still_ends_when_it_is_told_or_left() {
    for (hang, farewell) in [
        ("forever", true),
        ("forever", false),
        ("uninterruptible", true),
    ] {
        let driver = FakeDriver::new(&fault(
            &at_work(),
            &json!({"call": "nvmlDeviceGetTemperature", "hang": hang}),
        ));
        let mut helper = Helper::watching(&driver);
        wait_until("the call hangs", || {
            threads(helper.child.id())
                .iter()
                .any(|t| t.name == "nvml" && (hang == "forever" || t.state == "D"))
        });
        if farewell {
            helper.say(&ToHelper::Bye);
        }
        helper.ends();
    }
}

struct Thread {
    name: String,
    state: String,
}

fn threads(pid: u32) -> Vec<Thread> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let stats = tasks.filter_map(|t| fs::read_to_string(t.unwrap().path().join("stat")).ok());
    stats
        .filter_map(|stat| {
            let (start, rest) = stat.rsplit_once(')')?;
            Some(Thread {
                name: start.split_once('(')?.1.to_owned(),
                state: rest.split_whitespace().next()?.to_owned(),
            })
        })
        .collect()
}

#[test]
fn orders_change_what_is_watched() {
    let driver = FakeDriver::new(&json!({"gpus": [{}, {}, {}]}));
    let mut helper = Helper::watching(&driver);
    helper.tick(|gpus| gpus.len() == 3);
    helper.say(&ToHelper::Watch {
        gpus: Watched::These(vec![2]),
        interval_ms: 20,
    });
    helper.tick(|gpus| gpus.len() == 1 && gpus[0].index == 2);
    helper.say(&ToHelper::Stop);
    helper.watch(20);
    let mut last = 0;
    for _ in 0..3 {
        let mono_ms = helper.until(|m| match m {
            FromHelper::Tick { mono_ms, gpus } if gpus.len() == 3 => Some(*mono_ms),
            _ => None,
        });
        assert!(mono_ms > last);
        last = mono_ms;
    }
}

#[test]
fn an_xid_is_told_once_even_by_a_gpu_that_is_gone() {
    let mut scenario = json!({"gpus": [{}, {}], "events": [{"gpu": 1, "xid": 79, "after_s": 0}]});
    scenario["faults"] = json!([{"call": "nvmlDeviceGetIndex", "code": 15}]);
    let driver = FakeDriver::new(&scenario);
    let mut helper = Helper::watching(&driver);
    let mut xids = Vec::new();
    let mut ticks = 0;
    helper.until(|message| {
        match message {
            FromHelper::Xid { gpu, code, .. } => xids.push((*gpu, *code)),
            FromHelper::Tick { .. } if !xids.is_empty() => ticks += 1,
            _ => {}
        }
        (ticks == 5).then_some(())
    });
    assert_eq!(xids, [(1, 79)]);
}

#[test]
fn gpus_that_report_no_xids_do_not_silence_the_others() {
    let scenario = json!({"gpus": [{}, {}, {}], "events": [{"gpu": 2, "xid": 31}]});
    let refuses = json!({"call": "nvmlDeviceRegisterEvents", "gpu": 1, "code": 3});
    let driver = FakeDriver::new(&fault(&scenario, &refuses));
    let mut helper = Helper::watching(&driver);
    let xid = helper.until(|message| match message {
        FromHelper::Xid { gpu, code, .. } => Some((*gpu, *code)),
        _ => None,
    });
    assert_eq!(xid, (2, 31));
}

#[test]
fn a_panic_in_the_bindings_is_a_failure_in_words() {
    // They panic where an event set can't be given back.
    let driver = FakeDriver::without(&["nvmlEventSetFree"], &at_work());
    let mut helper = Helper::watching(&driver);
    helper.tick(|_| true);
    helper.tick(|_| true);
    helper.watch(50);
    let why = helper.until(|message| match message {
        FromHelper::Failed { why } => Some(why.clone()),
        _ => None,
    });
    assert!(why.contains("a panic was caught"), "{why}");
    // The rest of the process goes on.
    helper.say(&ToHelper::Bye);
    helper.ends();
}
