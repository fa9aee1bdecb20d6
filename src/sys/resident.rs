//! How much of the program stays in memory.

use std::fs;

/// Lets go of the pages of our own code and constants that lie in memory since the start and may
/// never be needed again. Those that are come back from the page cache when they are touched.
pub fn let_go_of_the_start() {
    // Where the kernel doesn't say what lies where, all stays.
    let (Ok(maps), Ok(program)) = (
        fs::read_to_string("/proc/self/maps"),
        fs::read_link("/proc/self/exe"),
    ) else {
        return;
    };
    for (start, end) in never_written(&maps, &program.to_string_lossy()) {
        // SAFETY: a private mapping of a file of which nothing was ever written: the pages are
        // the file's, and are read from it again.
        unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_DONTNEED) };
    }
}

/// The program's code, and the constants before it. Not those after it: they hold addresses,
/// which the loader wrote there.
fn never_written(maps: &str, program: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for line in maps.lines().filter(|line| line.ends_with(program)) {
        let mut words = line.split_ascii_whitespace();
        let (Some(range), Some(rights)) = (words.next(), words.next()) else {
            continue;
        };
        let range = range.split_once('-').and_then(|(start, end)| {
            let hex = |text| usize::from_str_radix(text, 16).ok();
            Some((hex(start)?, hex(end)?))
        });
        match rights {
            "r--p" => found.extend(range),
            "r-xp" => {
                found.extend(range);
                return found;
            }
            _ => return found,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
55d616dc7000-55d6170d1000 r--p 00000000 fe:00 326279       /opt/bin/gpuwatch
55d6170d1000-55d6179f6000 r-xp 00309000 fe:00 326279       /opt/bin/gpuwatch
55d6179f6000-55d617a62000 r--p 00c2e000 fe:00 326279       /opt/bin/gpuwatch
55d617a62000-55d617a64000 rw-p 00c9a000 fe:00 326279       /opt/bin/gpuwatch
7f1e45c14000-7f1e45c3a000 r--p 00000000 fe:00 325843       /lib/libc.so.6
";

    #[test]
    fn what_the_loader_wrote_stays() {
        let found = never_written(MAPS, "/opt/bin/gpuwatch");
        let wanted = [
            (0x55d6_16dc_7000, 0x55d6_170d_1000),
            (0x55d6_170d_1000, 0x55d6_179f_6000),
        ];
        assert_eq!(found, wanted);
        assert_eq!(never_written(MAPS, "/opt/bin/other"), []);
    }

    #[test]
    fn everything_still_works() {
        let_go_of_the_start();
        assert_eq!(format!("{:?}", "still".to_uppercase()), "\"STILL\"");
    }
}
