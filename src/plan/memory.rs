//! From a limit of GPU memory to what each framework understands. Pure.
//!
//! Owns what JAX's variable says and what the start-up hook of Python is told. Must not know how
//! either gets to the command.

use crate::model::MemLimit;

/// JAX's own variable. Newer versions know `XLA_CLIENT_MEM_FRACTION` as well, but refuse to start
/// where both are set.
pub const JAX_FRACTION: &str = "XLA_PYTHON_CLIENT_MEM_FRACTION";
/// What the start-up hook reads.
pub const HOOK_LIMIT: &str = "GPUWATCH_PYTHON_MEM_LIMIT";

/// What is set for a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limited {
    /// The share of a GPU's memory for JAX; None: it can't be told.
    pub fraction: Option<String>,
    /// For the hook: `<MiB>` or `<percent>%`, and the GPUs' memory in MiB where it is known.
    pub hook: String,
    /// A framework that isn't limited, and why.
    pub note: Option<(&'static str, String)>,
}

/// What is set for `limit` on GPUs with so much memory, in the order in which the command sees
/// them; None: that isn't known.
///
/// # Errors
/// No GPU has as much as the limit allows.
pub fn limited(limit: MemLimit, totals_mib: Option<&[u64]>) -> Result<Limited, String> {
    let totals = totals_mib.filter(|totals| !totals.is_empty());
    let most = totals.and_then(|totals| totals.iter().max().copied());
    match (limit, most) {
        (MemLimit::Percent(share), _) => Ok(Limited {
            fraction: Some(fraction(share / 100.0)),
            hook: match totals {
                Some(totals) => {
                    let totals: Vec<String> = totals.iter().map(u64::to_string).collect();
                    format!("{share}%:{}", totals.join(","))
                }
                None => format!("{share}%"),
            },
            note: totals.is_none().then(|| {
                let why = format!("the memory limit of {limit} is not kept by TensorFlow: how much memory the GPUs have is not known; give a size in its place");
                ("tensorflow", why)
            }),
        }),
        (MemLimit::Mib(mib), Some(most)) if mib > most as f64 => Err(format!(
            "{limit} is more than a GPU of this run has ({})",
            MemLimit::Mib(most as f64)
        )),
        (MemLimit::Mib(mib), most) => Ok(Limited {
            // On a smaller GPU beside it the same share is less, never more.
            fraction: most.map(|most| fraction(mib / most as f64)),
            hook: format!("{mib:.0}"),
            note: most.is_none().then(|| {
                let why = format!("the memory limit of {limit} is not kept by JAX, which knows shares alone: how much memory the GPUs have is not known; give a share like 80% in its place");
                ("jax", why)
            }),
        }),
    }
}

/// Rounded down: what is allowed must not become more.
fn fraction(share: f64) -> String {
    let text = format!("{:.4}", (share * 1e4 + 1e-6).floor() / 1e4);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(limit: &str, totals: Option<&[u64]>) -> (Option<String>, String, bool) {
        let told = limited(limit.parse().unwrap(), totals).unwrap();
        (told.fraction, told.hook, told.note.is_some())
    }

    #[test]
    fn a_size_is_a_share_of_the_largest_gpu() {
        let quarter = (Some("0.25".to_owned()), "6144".to_owned(), false);
        assert_eq!(told("6GiB", Some(&[24576])), quarter);
        assert_eq!(told("6GiB", Some(&[16384, 24576])), quarter);
        // 0.26666...
        let (fraction, ..) = told("4GiB", Some(&[15360]));
        assert_eq!(fraction.as_deref(), Some("0.2666"));
        assert_eq!(told("6GiB", None), (None, "6144".to_owned(), true));
        assert_eq!(told("6GiB", Some(&[])), (None, "6144".to_owned(), true));
    }

    #[test]
    fn a_share_is_one_whatever_there_is() {
        let known = (Some("0.8".to_owned()), "80%:24576,16384".to_owned(), false);
        assert_eq!(told("80%", Some(&[24576, 16384])), known);
        assert_eq!(
            told("80%", None),
            (Some("0.8".to_owned()), "80%".to_owned(), true)
        );
        assert_eq!(told("100%", None).0.as_deref(), Some("1"));
        assert_eq!(told("29%", None).0.as_deref(), Some("0.29"));
    }

    #[test]
    fn more_than_there_is_limits_nothing() {
        let said = limited(MemLimit::Mib(30720.0), Some(&[16384, 24576])).unwrap_err();
        assert_eq!(
            said,
            "30.0 GiB is more than a GPU of this run has (24.0 GiB)"
        );
    }
}
