//! `samples.csv.zst`: a record that was compressed.
//!
//! Owns which of the two files is read, and noticing one that is damaged. Must not know what is in
//! it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use ruzstd::decoding::StreamingDecoder;

use super::{PACKED, SAMPLES};

type Decoder = StreamingDecoder<BufReader<File>, ruzstd::decoding::FrameDecoder>;

/// The bytes of `samples.csv`, however they are kept.
pub enum Rows {
    /// As they are.
    Plain(File),
    /// Compressed.
    Packed(Packed),
}

/// Frames of Zstandard, one after the other: the one that is being read.
pub struct Packed(Option<Box<Decoder>>);

/// Opens what there is of a run's samples; the path is for messages.
///
/// # Errors
/// What the system refused, also where neither file is there, with the path of what it was about.
pub fn open_rows(run_dir: &Path) -> Result<(Rows, PathBuf), (io::Error, PathBuf)> {
    let (plain, packed) = (run_dir.join(SAMPLES), run_dir.join(PACKED));
    match open(&plain) {
        Ok(file) => Ok((Rows::Plain(file), plain)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let file = match open(&packed) {
                Ok(file) => file,
                // What is missing is the one that everybody knows.
                Err(e) if e.kind() == ErrorKind::NotFound => return Err((error, plain)),
                Err(e) => return Err((e, packed)),
            };
            match Packed::new(file) {
                Ok(rows) => Ok((Rows::Packed(rows), packed)),
                Err(error) => Err((error, packed)),
            }
        }
        Err(error) => Err((error, plain)),
    }
}

/// Whether a directory holds samples.
pub fn has_samples(dir: &Path) -> bool {
    [SAMPLES, PACKED].iter().any(|name| dir.join(name).exists())
}

fn open(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    // What isn't a file may open all the same.
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(ErrorKind::IsADirectory.into())
    }
}

impl Packed {
    fn new(file: File) -> io::Result<Self> {
        let source = BufReader::with_capacity(64 * 1024, file);
        Ok(Self(frame(source)?))
    }
}

/// The next frame, if there is one.
fn frame(mut source: BufReader<File>) -> io::Result<Option<Box<Decoder>>> {
    if source.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let decoder = StreamingDecoder::new(source).map_err(|_| damaged())?;
    Ok(Some(Box::new(decoder)))
}

fn damaged() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "it is damaged, or not compressed by Zstandard",
    )
}

impl Read for Packed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some(mut decoder) = self.0.take() {
            let n = decoder.read(buf).map_err(|_| damaged())?;
            if n > 0 || buf.is_empty() {
                self.0 = Some(decoder);
                return Ok(n);
            }
            let ended = &decoder.decoder;
            let told = ended.get_checksum_from_data();
            if told.is_some() && told != ended.get_calculated_checksum() {
                return Err(damaged());
            }
            self.0 = frame(decoder.into_inner())?;
        }
        Ok(0)
    }
}

impl Read for Rows {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.read(buf),
            Self::Packed(packed) => packed.read(buf),
        }
    }
}
