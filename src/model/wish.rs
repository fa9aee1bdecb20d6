//! Which GPUs a run asks for.

use std::str::FromStr;
use std::time::Duration;

/// What `--gpus` or a profile's `gpus.choose` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuChoice {
    /// All that nobody uses or claims; none of them is claimed.
    Free,
    /// So many that nobody uses or claims; they are claimed.
    Count(usize),
    /// These, by NVML index, UUID (or a unique start of it) or MIG name; they are claimed.
    Named(Vec<String>),
    /// `CUDA_VISIBLE_DEVICES` is left alone, and no GPU is watched.
    None,
}

/// How long to wait for what can't be had at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    #[default]
    No,
    /// So long.
    For(Duration),
    /// For ever.
    Always,
}

/// All that a run asks of its GPUs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuWish {
    /// Which; None: the default, `Free`, which gives way where no driver answers.
    pub choice: Option<GpuChoice>,
    /// A GPU with less free memory doesn't count as free, MiB.
    pub min_free_mib: f64,
    /// Only GPUs whose product name fits; see `fits`.
    pub gpu_type: Option<String>,
    /// What to do where none can be had.
    pub wait: Wait,
    /// Somebody asked for it: it doesn't give way.
    pub asked: bool,
}

impl FromStr for GpuChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FORMS: &str = "write free, auto, none, a count, or id: and a list, like id:0,1";
        match text.trim() {
            "free" => return Ok(Self::Free),
            "none" => return Ok(Self::None),
            "auto" => return Ok(Self::Count(1)),
            _ => {}
        }
        if let Some(list) = text.trim().strip_prefix("id:") {
            return named(list);
        }
        match text.trim().parse::<usize>() {
            Ok(0) => Err("0 is a count: write none for no GPU, id:0 for GPU 0".to_owned()),
            Ok(count) if count <= 1024 => Ok(Self::Count(count)),
            Ok(_) => Err(format!("no machine has {text} GPUs")),
            Err(_) if looks_like_a_list(text) => Err(format!(
                "'{text}' is neither a count nor a word: write id:{}",
                text.trim()
            )),
            Err(_) => Err(format!("'{text}' won't do: {FORMS}")),
        }
    }
}

fn looks_like_a_list(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("GPU-")
        || text.starts_with("MIG-")
        || (text.contains(',') && text.chars().all(|c| c.is_ascii_digit() || ", ".contains(c)))
}

fn named(list: &str) -> Result<GpuChoice, String> {
    let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err("an entry after id: is empty: write it like id:0,1".to_owned());
    }
    let known = |name: &&String| {
        name.parse::<u32>().is_ok() || ["GPU-", "MIG-"].iter().any(|p| name.starts_with(p))
    };
    if let Some(odd) = names.iter().find(|name| !known(name)) {
        return Err(format!(
            "'{odd}' names no GPU: write an index, a UUID (GPU-...) or a MIG name (MIG-...)"
        ));
    }
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(format!("'{name}' is named twice"));
        }
    }
    Ok(GpuChoice::Named(names))
}

/// Whether a product's name fits a pattern: whatever the case, somewhere in the name, `*` for
/// anything (`a100`, `RTX*4090`).
pub fn fits(pattern: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut rest = name.as_str();
    pattern.to_ascii_lowercase().split('*').all(|part| {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_as_people_write_them() {
        let named =
            |list: &[&str]| GpuChoice::Named(list.iter().map(|n| (*n).to_owned()).collect());
        for (text, choice) in [
            ("free", GpuChoice::Free),
            ("none", GpuChoice::None),
            ("auto", GpuChoice::Count(1)),
            ("1", GpuChoice::Count(1)),
            ("8", GpuChoice::Count(8)),
            ("id:0", named(&["0"])),
            ("id:2, 0", named(&["2", "0"])),
            ("id:GPU-1234", named(&["GPU-1234"])),
            ("id:MIG-GPU-12/1/0", named(&["MIG-GPU-12/1/0"])),
        ] {
            assert_eq!(text.parse(), Ok(choice), "{text}");
        }
        for (text, said) in [
            ("0", "id:0"),
            ("0,1", "write id:0,1"),
            ("GPU-12", "write id:GPU-12"),
            ("", "won't do"),
            ("-1", "won't do"),
            ("all", "won't do"),
            ("99999", "no machine"),
            ("id:", "is empty"),
            ("id:0,,1", "is empty"),
            ("id:x", "names no GPU"),
            ("id:-1", "names no GPU"),
            ("id:1,0,1", "named twice"),
        ] {
            let error = text.parse::<GpuChoice>().unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn types_fit_by_a_part_of_the_name() {
        let name = "NVIDIA GeForce RTX 4090";
        for pattern in ["4090", "rtx*4090", "geforce", "NVIDIA*", "*", ""] {
            assert!(fits(pattern, name), "{pattern}");
        }
        for pattern in ["A100", "4090*RTX", "rtx4090"] {
            assert!(!fits(pattern, name), "{pattern}");
        }
    }
}
