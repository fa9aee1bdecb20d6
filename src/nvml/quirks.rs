//! What a driver version is known to do wrong.
//!
//! Pure. Sources: NVIDIA's changelogs, and issue threads of the tools that met them.

/// How to treat one driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// The `_v3` process lists write the 24-byte entries that callers have room for.
    ///
    /// Drivers 535.43 to 535.86 write 32 bytes and so beyond the buffer.
    pub v3_lists: bool,
    /// What of it is told by the PIDs that we know processes by.
    pub told: Told,
    /// Our PIDs aren't the host's.
    pub namespaced: bool,
}

/// What a driver tells by PIDs of the caller's namespace: later versions more and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// Nothing: all PIDs are the host's, and so are of no use in a container.
    Nothing,
    /// Process lists (535.113.01).
    Lists,
    /// Memory per process as well (565.57.01).
    Memory,
    /// Utilisation samples as well (570.86.15, or any version outside containers).
    Everything,
}

/// What is known of this driver; `namespaced` says that our PIDs aren't the host's.
pub fn quirks(driver: Option<&str>, namespaced: bool) -> Quirks {
    let version = driver.and_then(version);
    Quirks {
        // Of an unknown version only the older function is known to be safe.
        v3_lists: version.is_some_and(|v| !((535, 43, 0)..(535, 87, 0)).contains(&v)),
        namespaced,
        told: match version {
            _ if !namespaced => Told::Everything,
            Some(v) if v >= (570, 86, 15) => Told::Everything,
            Some(v) if v >= (565, 57, 1) => Told::Memory,
            Some(v) if v >= (535, 113, 1) => Told::Lists,
            _ => Told::Nothing,
        },
    }
}

type Version = (u32, u32, u32);

/// `535.113.01` as numbers; parts that are missing are 0.
fn version(text: &str) -> Option<Version> {
    let mut parts = text.trim().split('.').map(str::parse::<u32>);
    let major = parts.next()?.ok()?;
    let mut rest = parts.map(|p| p.unwrap_or(0));
    Some((major, rest.next().unwrap_or(0), rest.next().unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_that_overrun_the_callers_buffer() {
        for (driver, safe) in [
            ("470.256.02", true),
            ("530.41.03", true),
            ("535.43.02", false),
            ("535.54.03", false),
            ("535.86.10", false),
            ("535.98", true),
            ("535.104.05", true),
            ("580.95.05", true),
            ("", false),
            ("nonsense", false),
        ] {
            assert_eq!(quirks(Some(driver), false).v3_lists, safe, "{driver}");
        }
        assert!(!quirks(None, false).v3_lists);
    }

    #[test]
    fn in_a_container_older_drivers_count_in_the_hosts_pids() {
        for (driver, namespaced, told) in [
            ("470.1", false, Told::Everything),
            ("535.104.05", true, Told::Nothing),
            ("535.113.01", true, Told::Lists),
            ("565.57.01", true, Told::Memory),
            ("570.86.15", true, Told::Everything),
            ("580.95.05", true, Told::Everything),
        ] {
            assert_eq!(quirks(Some(driver), namespaced).told, told, "{driver}");
        }
        assert_eq!(quirks(None, true).told, Told::Nothing);
    }
}
