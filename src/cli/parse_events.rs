//! Event files as `parse` reads them: from their beginning, and without a clock.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
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
            return Ok(());
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
        let found = followed.look(ROOM).map_err(Failure::Read)?;
        if found.is_empty() {
            return Ok(());
        }
        for found in found {
            if let Found::Events { file, place, bytes } = found {
                let written = files.entry(file).or_default().feed(&bytes);
                printer.print(&scalars.absorb(&place, None, &written))?;
            }
        }
    }
}
