//! `gpuwatch top`: runs in progress on this machine, live on the terminal.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::output::complain;
use super::ps::in_progress;
use crate::live;
use crate::model::units;
use crate::sys::defect;

/// Your runs in progress on this machine, live on the terminal; q leaves
#[derive(Args, Debug)]
pub struct TopArgs {
    /// Where runs are recorded [default: gpuwatch/runs in the user's state directory]
    #[arg(long, value_name = "DIR", env = "GPUWATCH_DIR")]
    dir: Option<PathBuf>,
    /// How often it looks
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::duration)]
    interval: Duration,
}

/// Less would be a load on the disk, and shows nothing more: runs tell once a second.
const SHORTEST: Duration = Duration::from_millis(100);

/// Runs the command: 0 once somebody left, or 1 where there is no terminal, or the records can't
/// be read.
pub fn run(args: &TopArgs) -> ExitCode {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return complain(
            &"top needs a terminal to draw on and keys to read; \
             'gpuwatch ps' prints the same once, anywhere",
        );
    }
    let look = || in_progress(args.dir.as_deref());
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    // What Rust prints of a panic would be lost with the screen that it is printed on.
    defect::quiet();
    match defect::caught(|| live::show(look, args.interval.max(SHORTEST), !no_color)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) => complain(&error),
        Err(why) => complain(&defect::sentence("the live view is over", &why)),
    }
}
