//! Before the start: which GPUs, which environment, where the record goes. Nothing is started
//! here but the helper, and a refusal leaves nothing behind.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::launch::child;
use crate::launch::signals::Arrivals;
use crate::launch::streams::Streams;
use crate::model::{Action, EndSettings, Leftovers, Switch, TellSettings, duration_text};
use crate::plan::env::{self, Chosen, EnvChange, EnvInputs, RecordPaths};
use crate::plan::profile::Metrics;
use crate::plan::{argv, deeds, job_ids, run_name};
use crate::record::{RecordError, RunDir, root_for_writing, run_dir, run_id};
use crate::report::text::clean;
use crate::serve::{Listener, Outlets};
use crate::sys::signals::Mask;
use crate::sys::spawn::Unspawned;
use crate::tell::Channels;

use super::beside::Beside;
use super::clock::wall_now;
use super::files::Files;
use super::memory::MemoryLimit;
use super::metrics;
use super::placement::{self, Placement, Unplaced};
use super::request::{Ending, Refused, Request};

/// What a run shall be, and what is known of it so far.
pub struct Asked {
    /// What was asked for.
    pub request: Request,
    /// Whom alerts go to.
    pub channels: Channels,
    /// Where metrics are asked for.
    pub listener: Option<Listener>,
    /// Whether anybody hears of what would be seen.
    pub heard: bool,
    /// What went wrong so far, for the summary.
    pub notes: Vec<String>,
}

/// Everything that a start needs.
pub struct Prepared {
    /// What was asked for.
    pub request: Request,
    /// The run's id, with or without a record.
    pub id: String,
    /// The run's name.
    pub name: String,
    /// Where the record goes; None: nowhere.
    pub dir: Option<RunDir>,
    /// The changes of the child's environment.
    pub env: Vec<EnvChange>,
    /// Which GPUs.
    pub placement: Placement,
    /// Whom alerts go to.
    pub channels: Channels,
    /// What others can scrape.
    pub outlets: Outlets,
    /// Whether anybody hears of what is seen; else nothing is looked at.
    pub heard: bool,
    /// Who looks at followed files.
    pub files: Option<Files>,
    /// What went wrong so far, for the summary.
    pub notes: Vec<String>,
}

/// Why nothing was started.
pub enum Unstarted {
    /// It can't be done.
    Refused(Refused),
    /// Somebody ended us first.
    Signal(i32),
}

impl From<Unplaced> for Unstarted {
    fn from(unplaced: Unplaced) -> Self {
        match unplaced {
            Unplaced::Refused(refused) => Self::Refused(refused),
            Unplaced::Signal(signal) => Self::Signal(signal),
        }
    }
}

/// Prepares a run.
pub fn prepare(
    asked: Asked,
    streams: &Streams,
    beside: Option<&Beside>,
    arrivals: &Arrivals,
) -> Result<Prepared, Unstarted> {
    let Asked {
        request,
        channels,
        listener,
        heard,
        mut notes,
    } = asked;
    let name = request
        .name
        .clone()
        .unwrap_or_else(|| run_name(&request.argv));
    notes.extend(unheeded(&request));
    // Wrong places are refused before anybody waits for a driver.
    let (id, dir) = record_place(&request, &name, &mut notes).map_err(Unstarted::Refused)?;
    match placement::place(&request, beside, arrivals) {
        Ok(placement) => {
            let totals = placement.totals_mib.as_deref();
            let mut memory = match MemoryLimit::of(&request, totals, &mut notes) {
                Ok(memory) => memory,
                Err(refused) => {
                    discard(dir);
                    return Err(Unstarted::Refused(refused));
                }
            };
            let path = dir.as_ref().map(RunDir::path);
            if let Some(memory) = &mut memory {
                memory.write_hook(path, &mut notes);
            }
            let piped = streams.stdout_piped;
            let chosen = placement.chosen.as_ref();
            let env = environment(&request, piped, (&id, path), chosen, memory.as_ref());
            let collector = request.settings.metrics.textfile.as_deref();
            let (outlets, problem) = Outlets::new(listener, collector, &id);
            notes.extend(problem);
            let follow = if heard {
                &request.settings.follow[..]
            } else {
                &[]
            };
            let files = files(follow, &mut notes);
            Ok(Prepared {
                request,
                id,
                name,
                dir,
                env,
                placement,
                channels,
                outlets,
                heard,
                files,
                notes,
            })
        }
        Err(unplaced) => {
            discard(dir);
            Err(unplaced.into())
        }
    }
}

/// Whether anything that is seen of this run can reach anybody: a record, the summary, a
/// channel, what is done about a finding, whoever scrapes metrics. If not there is no reason to look.
pub fn is_heard(request: &Request, channels: &Channels) -> bool {
    let mut actions = request.settings.act.0.values().flatten();
    let acts = actions.any(|action| *action != Action::Stacks);
    let gated = !request.settings.gates.is_empty();
    let scraped = request.settings.metrics != Metrics::default();
    let acts = acts || !request.settings.end.restart.on.is_empty();
    request.record || !request.quiet || !channels.is_empty() || acts || gated || scraped
}

/// Whom alerts go to. Inside another run nobody: the outer one tells.
pub fn channels(request: &Request) -> Result<Channels, Refused> {
    let nested = std::env::var_os("GPUWATCH_RUN_ID").is_some();
    let settings = request.settings.tell.clone();
    let told = if nested {
        TellSettings {
            desktop: Switch::Off,
            ..TellSettings::default()
        }
    } else {
        settings
    };
    Channels::open(told).map_err(|error| Refused::own(error.to_string()))
}

/// A setting that does nothing yet must not look as if it did.
fn unheeded(request: &Request) -> Option<String> {
    let keys = &request.settings.unheeded;
    let verb = if keys.len() == 1 { "is" } else { "are" };
    let list = keys.join(", ");
    (!keys.is_empty()).then(|| format!("{list} of the profile {verb} not acted on by this version"))
}

fn record_place(
    request: &Request,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<(String, Option<RunDir>), Refused> {
    let new_id = || run_id(&wall_now(), name, fastrand::u16(..));
    if !request.record {
        return Ok((new_id(), None));
    }
    let made = new_record(request.dir.as_deref(), new_id);
    let usable = |dir: RunDir| match dir.create_progress_file() {
        Ok(_) => Ok(dir),
        Err(error) => {
            discard(Some(dir));
            Err(error)
        }
    };
    match made.and_then(usable) {
        Ok(dir) => Ok((dir.id().to_owned(), Some(dir))),
        Err(error) if request.dir.is_some() && !error.is_passing() => {
            Err(Refused::own(error.to_string()))
        }
        Err(error) => {
            notes.push(format!("no record is kept: {error}"));
            Ok((new_id(), None))
        }
    }
}

fn new_record(dir: Option<&Path>, new_id: impl Fn() -> String) -> Result<RunDir, RecordError> {
    let root = root_for_writing(dir)?;
    let mut made = RunDir::create(&root, &new_id());
    // Two runs of one name in one second share an id once in 65,536 times.
    for _ in 0..3 {
        if !matches!(made, Err(RecordError::Taken { .. })) {
            break;
        }
        made = RunDir::create(&root, &new_id());
    }
    made
}

fn environment(
    request: &Request,
    stdout_is_pipe: bool,
    (id, dir): (&str, Option<&Path>),
    chosen: Option<&Chosen>,
    memory: Option<&MemoryLimit>,
) -> Vec<EnvChange> {
    let settings = &request.settings;
    let named = settings.framework.as_ref();
    let record = dir.map(|dir| RecordPaths {
        id: id.to_owned(),
        dir: dir.into(),
        progress: dir.join(run_dir::PROGRESS_FILE).into(),
    });
    env::environment(&EnvInputs {
        inherited: &|name| std::env::var_os(name),
        user: &request.env,
        chosen,
        profile: &settings.env,
        framework: named.map(|(name, _)| (name.as_str(), &*settings.framework_env)),
        memory: memory.map(MemoryLimit::memory),
        stdout_is_pipe,
        record: record.as_ref(),
        no_env: request.no_env,
    })
}

/// Before the command starts, so that what it writes is told from what was there.
fn files(paths: &[PathBuf], notes: &mut Vec<String>) -> Option<Files> {
    let started = (!paths.is_empty()).then(|| Files::start(paths))?;
    started
        .map_err(|error| notes.push(format!("no other files are followed: {error}")))
        .ok()
}

fn discard(dir: Option<RunDir>) {
    if let Some(dir) = dir {
        // What can't be removed reads as a lost run; the refusal is worth more than that.
        let _ = dir.remove();
    }
}

impl Prepared {
    /// The changes of the child's environment.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        self.env
            .iter()
            .map(|change| (OsString::from(&change.name), change.value.clone()))
            .collect()
    }

    /// The one line before the start, if there is something to say.
    pub fn announcement(&self) -> Option<String> {
        let metrics = metrics::chosen(&self.outlets, &self.request.settings.metrics);
        let said: Vec<&str> = self
            .placement
            .said
            .iter()
            .chain(&self.notes)
            .chain(&metrics)
            .map(String::as_str)
            .collect();
        let rank = job_ids(&|name| std::env::var(name).ok()).label();
        (!self.request.quiet && !said.is_empty())
            .then(|| format!("gpuwatch: {rank}{}\n", clean(&said.join("; "))))
    }

    /// The command doesn't run: no record stays.
    pub fn not_started(self, error: Unspawned) -> Refused {
        let refused = match error {
            Unspawned::Exec(error) => {
                let (code, text) = child::spawn_failure(&self.request.argv[0], &error);
                Refused {
                    code: Some(code),
                    text,
                }
            }
            Unspawned::Own(error) => Refused::own(format!(
                "can't start a process: {error}; nothing was started"
            )),
        };
        discard(self.dir);
        refused
    }
}

/// `--dry-run`: what would be set and run. Starts nothing and leaves nothing.
pub fn dry_run(request: &Request) -> Result<Ending, Refused> {
    let none = Mask::empty();
    let arrivals =
        Arrivals::new(&none, none).map_err(|e| Refused::own(format!("can't read signals: {e}")))?;
    let sentinel = crate::launch::sentinel::Sentinel::start(&[], &request.argv).ok();
    let beside = sentinel.map(Beside::new);
    let placement = match placement::place(request, beside.as_ref(), &arrivals) {
        Ok(placement) => placement,
        Err(Unplaced::Refused(refused)) => return Err(refused),
        Err(Unplaced::Signal(signal)) => return Ok(Ending::Signal(signal)),
    };
    if let Some(beside) = &beside {
        beside.dismiss();
    }
    let streams = Streams::arrange(&request.argv);
    // There is no run, and so no name for it.
    let (id, dir) = (
        "<id>",
        request
            .record
            .then_some(Path::new("<directory of the runs>/<id>")),
    );
    let mut notes = Vec::new();
    let memory = MemoryLimit::of(request, placement.totals_mib.as_deref(), &mut notes)?;
    let env = environment(
        request,
        streams.stdout_piped,
        (id, dir),
        placement.chosen.as_ref(),
        memory.as_ref(),
    );
    let text = plan_text(request, &placement, &notes, &env);
    match io::stdout().write_all(text.as_bytes()) {
        // A reader that has gone away needs no more.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Refused::own(format!(
            "cannot write what would be set: {error}"
        ))),
        _ => Ok(Ending::Code(0)),
    }
}

fn plan_text(
    request: &Request,
    placement: &Placement,
    notes: &[String],
    env: &[EnvChange],
) -> String {
    let command = format!(
        "command: {}",
        clean(&argv::recorded(&request.argv).join(" "))
    );
    let gpus = placement
        .said
        .iter()
        .map(|said| format!("gpus: {}", clean(said)));
    let said = notes.iter().map(|note| format!("note: {}", clean(note)));
    let set = env::recorded(env).into_iter().map(|(name, setting)| {
        format!(
            "set: {name}={}  ({})",
            clean(&setting.value),
            clean(&setting.why)
        )
    });
    let scraped = metrics::planned(&request.settings.metrics);
    let gates = request.settings.gates.iter();
    let gates = gates.map(|gate| format!("end: exit code 3 if {}", clean(&gate.text)));
    let end = ending(&request.settings.end).map(|text| format!("end: {text}"));
    let acts = deeds::planned(&request.settings.act, &request.settings.end);
    let acts = acts.iter().map(|text| format!("act: {}", clean(text)));
    let mut lines: Vec<String> = [command]
        .into_iter()
        .chain(gpus)
        .chain(said)
        .chain(set)
        .chain(scraped)
        .chain(acts)
        .chain(end)
        .chain(gates)
        .collect();
    lines.push(String::new());
    lines.join("\n")
}

/// How the run may end, where that was settled.
fn ending(end: &EndSettings) -> impl Iterator<Item = String> {
    let limit = end.time_limit.map(|limit| {
        let (limit, grace) = (duration_text(limit), duration_text(end.grace_of_limit()));
        format!("after {limit} by TERM, and KILL {grace} later")
    });
    let kill = end.kill_after.map(|grace| {
        let grace = duration_text(grace);
        format!("KILL {grace} after INT, TERM, HUP or QUIT")
    });
    let grace = duration_text(end.grace_of_leftovers());
    let leftovers = match end.leftovers {
        Leftovers::Report => None,
        Leftovers::Wait => Some("leftovers are waited for".to_owned()),
        Leftovers::Kill => Some(format!("leftovers get TERM, and KILL {grace} later")),
    };
    limit.into_iter().chain(kill).chain(leftovers)
}
