//! What the kernel says a process has used: CPU time and resident memory.
use std::fs;

/// CPU time of all threads in microseconds. On a busy machine this is the figure that stays put.
pub fn cpu_us(process: u32) -> u64 {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let nanoseconds: u64 = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    nanoseconds / 1000
}

/// User and system time of a process in microseconds, in steps of a clock tick: unlike the sum over its threads,
/// this counts those that have ended, and a server that starts threads for its work has many of them.
pub fn process_cpu_us(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    ticks(&stat).unwrap_or(0) * 1_000_000 / rustix::param::clock_ticks_per_second()
}

/// `utime + stime`. The name before them is in parentheses and may itself hold spaces and parentheses.
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

pub fn resident_mb(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    let kilobytes = line.split_whitespace().nth(1).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    kilobytes / 1024.0
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn user_and_system_time_are_found_behind_an_odd_name() {
        let stat = "17 (a) b (c) S 1 17 17 0 -1 4194560 900 0 0 0 250 50 0 0 20 0 8 0 12345";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!(ticks("no such process"), None);
    }
}
