//! Which versions belong together.
//!
//! As of November 2026. TensorFlow: "Tested build configurations" of its guide to building from
//! source, Linux, GPU. Drivers: NVIDIA's "CUDA Compatibility" and the release notes of CUDA 13.

/// What a TensorFlow needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorFlow {
    /// The minor version of 2, first and last.
    releases: (u32, u32),
    /// The minor version of Python 3, first and last.
    pub python: (u32, u32),
    /// cuDNN, at least.
    pub cudnn: (u32, u32),
    /// CUDA.
    pub cuda: (u32, u32),
}

const fn tf(
    releases: (u32, u32),
    python: (u32, u32),
    cudnn: (u32, u32),
    cuda: (u32, u32),
) -> TensorFlow {
    TensorFlow {
        releases,
        python,
        cudnn,
        cuda,
    }
}

const TENSORFLOW: [TensorFlow; 8] = [
    tf((21, 21), (10, 13), (9, 3), (12, 5)),
    tf((20, 20), (9, 13), (9, 3), (12, 5)),
    tf((18, 19), (9, 12), (9, 3), (12, 5)),
    tf((17, 17), (9, 12), (8, 9), (12, 3)),
    tf((15, 15), (9, 11), (8, 9), (12, 2)),
    tf((14, 14), (9, 11), (8, 7), (11, 8)),
    tf((12, 13), (8, 11), (8, 6), (11, 8)),
    tf((10, 11), (7, 10), (8, 1), (11, 2)),
];

/// Major version of CUDA, and the oldest Linux driver on which its releases run.
const DRIVERS: [(u32, [u32; 3]); 3] = [(11, [450, 80, 2]), (12, [525, 60, 13]), (13, [580, 65, 6])];

/// What this TensorFlow needs; none of a version that isn't in the table.
pub fn tensorflow(version: &str) -> Option<TensorFlow> {
    let (2, minor) = two(version)? else {
        return None;
    };
    let holds = |t: &&TensorFlow| (t.releases.0..=t.releases.1).contains(&minor);
    TENSORFLOW.iter().find(holds).copied()
}

/// The oldest driver for this major version of CUDA, as text.
pub fn least_driver(cuda: u32) -> Option<String> {
    let (_, [a, b, c]) = DRIVERS.iter().find(|(major, _)| *major == cuda)?;
    Some(format!("{a}.{b:02}.{c:02}"))
}

/// Whether this driver is older than that CUDA wants; none if that isn't known.
pub fn too_old(driver: &str, cuda: u32) -> Option<bool> {
    let (_, least) = DRIVERS.iter().find(|(major, _)| *major == cuda)?;
    let numbers: Vec<u32> = driver.split('.').map_while(|p| p.parse().ok()).collect();
    (!numbers.is_empty()).then(|| numbers.as_slice() < least.as_slice())
}

/// The first two numbers of a version.
pub fn two(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(['.', '+']);
    let major = parts.next()?.parse().ok()?;
    let minor = parts.next().map_or("", |part| {
        let end = part.find(|c: char| !c.is_ascii_digit());
        &part[..end.unwrap_or(part.len())]
    });
    Some((major, minor.parse().unwrap_or(0)))
}

/// The number before the first dot.
pub fn major(version: &str) -> Option<u32> {
    two(version).map(|(major, _)| major)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_finds_its_row() {
        let needs = tensorflow("2.19.1").unwrap();
        assert_eq!((needs.cuda, needs.cudnn), ((12, 5), (9, 3)));
        assert_eq!(tensorflow("2.21.0-rc1").unwrap().python, (10, 13));
        assert_eq!(tensorflow("2.16.1"), None, "not in the table: not known");
        assert_eq!(tensorflow("1.15.0"), None);
        assert_eq!(tensorflow("nonsense"), None);
    }

    #[test]
    fn drivers_are_compared_as_numbers() {
        assert_eq!(too_old("525.60.13", 12), Some(false));
        assert_eq!(too_old("525.60.11", 12), Some(true));
        assert_eq!(too_old("535.104", 12), Some(false));
        assert_eq!(too_old("470.82.01", 12), Some(true));
        assert_eq!(too_old("1000.1", 13), Some(false));
        assert_eq!(too_old("580.95.05", 14), None);
        assert_eq!(too_old("?", 12), None);
        assert_eq!(least_driver(11).as_deref(), Some("450.80.02"));
    }

    #[test]
    fn a_version_may_have_a_tail() {
        assert_eq!(two("2.15.0+cu132"), Some((2, 15)));
        assert_eq!(two("9"), Some((9, 0)));
        assert_eq!(two("12.5rc1"), Some((12, 5)));
        assert_eq!(two("x"), None);
    }
}
