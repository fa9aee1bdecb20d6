//! Event files as `parse` reads them: from their beginning, and without a clock. What is read
//! before damage is printed before it is said.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::Path;

use super::{Failure, Printer};
use crate::observe::{Before, Followed, Found};
use crate::read::{EventFile, Scalars};

/// So much of a directory's files is read at once.
const ROOM: usize = 1 << 20;

/// One file, or what comes through a pipe.
pub(super) fn file<W: Write>(
    input: &mut impl BufRead,
    printer: &mut Printer<W>,
) -> Result<(), Failure> {
    let (mut file, mut scalars) = (EventFile::default(), Scalars::default());
    loop {
        let bytes = input.fill_buf().map_err(Failure::Read)?;
        if bytes.is_empty() {
            return whole(&file);
        }
        let used = bytes.len();
        let written = file.feed(bytes);
        printer.print(&scalars.absorb("", None, &written))?;
        input.consume(used);
    }
}

/// All event files below a directory.
pub(super) fn below<W: Write>(dir: &Path, printer: &mut Printer<W>) -> Result<(), Failure> {
    let mut followed = Followed::new(dir.to_owned(), Before::default());
    let mut files: BTreeMap<usize, EventFile> = BTreeMap::new();
    let mut scalars = Scalars::default();
    loop {
        let (found, result) = followed.look(ROOM);
        if found.is_empty() {
            result.map_err(Failure::Read)?;
            break;
        }
        for found in found {
            if let Found::Events { file, place, bytes } = found {
                let written = files.entry(file).or_default().feed(&bytes);
                printer.print(&scalars.absorb(&place, None, &written))?;
            }
        }
    }
    if !followed.was_there() {
        // As of any other directory.
        return Err(Failure::Read(io::Error::from_raw_os_error(libc::EISDIR)));
    }
    files.values().try_for_each(whole)
}

fn whole(file: &EventFile) -> Result<(), Failure> {
    if file.is_damaged() {
        let what = "the event file is damaged, and nothing behind the damage is read";
        return Err(Failure::Read(io::Error::other(what)));
    }
    Ok(())
}
