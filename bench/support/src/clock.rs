//! CPU time of processes, and the time limit of a run.

use std::{fs, io, process, thread, time::Duration};

use nix::time::{ClockId, clock_gettime};

/// The CPU time that this process has used.
#[must_use]
pub fn own_cpu() -> Duration {
    // Not `getrusage`, which counts in ticks on some kernels.
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .map(Duration::from)
        .unwrap_or_default()
}

/// The CPU time that the living children of this process have used; zero if the system does not provide it.
///
/// For a client whose SDK starts the server and does not expose its process id.
#[must_use]
pub fn children_cpu() -> Duration {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(process::id()))
        .filter_map(|pid| process_cpu(pid).ok())
        .sum()
}

fn parent(pid: u32) -> Option<u32> {
    // The name, in parentheses, may contain any characters; state and parent come after it.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// The CPU time that the living threads of another process have used.
///
/// The scheduler's statistics count nanoseconds, whereas `/proc/PID/stat` counts ticks of ten milliseconds.
///
/// # Errors
/// If the process is gone, or the kernel keeps no such statistics.
pub fn process_cpu(pid: u32) -> io::Result<Duration> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end between the listing and the reading. Its time is then missing from the sum, as it is in `stat`.
        let Ok(statistics) = fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        let on_cpu = statistics
            .split(' ')
            .next()
            .and_then(|field| field.parse::<u64>().ok());
        nanoseconds +=
            on_cpu.ok_or_else(|| io::Error::other("the kernel keeps no scheduler statistics"))?;
    }
    Ok(Duration::from_nanos(nanoseconds))
}

/// A time limit that is longer than any measurement.
pub const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Ends this process after a time, so that a peer that loses an answer does not block the benchmark forever.
pub fn give_up_after(time: Duration) {
    thread::spawn(move || {
        thread::sleep(time);
        eprintln!(
            "timed out after {} seconds: an answer was lost, or the peer is very slow",
            time.as_secs()
        );
        process::exit(1);
    });
}
