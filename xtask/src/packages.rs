//! Programs that tests need, either installed on the system or unpacked from its packages, which needs no root.

use std::{
    env, fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// The dependencies that are not unpacked: every system has them, or a program that serves only its own machine does not need them.
const NOT_NEEDED: &[&str] = &["adduser", "iproute2", "libc6", "nginx-common"];

/// The beginning of a line that reports a skipped test and the reason.
pub const LEFT_OUT: &str = "skipped: ";

/// A program, and the packages that contain it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    name: &'static str,
    /// The path of the program below `/`, or below the directory of its unpacked packages.
    path: &'static str,
    packages: &'static [&'static str],
    /// The argument with which the program prints its version and ends.
    version: &'static str,
}

/// The proxy in front of servers.
pub const NGINX: Program = Program {
    name: "nginx",
    path: "usr/sbin/nginx",
    packages: &["nginx"],
    version: "-v",
};

/// The store of many nodes.
pub const REDIS: Program = Program {
    name: "redis-server",
    path: "usr/bin/redis-server",
    packages: &["redis-server", "redis-tools"],
    version: "--version",
};

impl Program {
    /// Returns the path of the program, and unpacks its packages if it is not installed. `None` if it is missing and there is no
    /// `apt-get` to download them: then the tests that need it are [left out](left_out).
    ///
    /// # Errors
    /// If the program is missing, and `apt-get` is there but cannot provide it.
    pub fn bring(self) -> Result<Option<PathBuf>, String> {
        let installed = Path::new("/").join(self.path);
        let home = packages().join(self.name);
        let unpacked = home.join(self.name);
        if let Some(program) = [&installed, &unpacked]
            .into_iter()
            .find(|it| self.works(it))
        {
            return Ok(Some(program.clone()));
        }
        if !has_apt() {
            return Ok(None);
        }
        // Most systems have the libraries that the program needs.
        let brought = match self.unpack(&home, Vec::new()) {
            Ok(()) if self.works(&unpacked) => return Ok(Some(unpacked)),
            _ => self.libraries().and_then(|it| self.unpack(&home, it)),
        };
        match brought {
            Ok(()) if self.works(&unpacked) => Ok(Some(unpacked)),
            Ok(()) => Err(self.missing("the unpacked program does not start")),
            Err(reason) => Err(self.missing(&reason)),
        }
    }

    fn missing(self, reason: &str) -> String {
        format!(
            "{} is not installed, and its package cannot be unpacked: {reason}\ninstall it: apt-get install {}",
            self.name,
            self.packages.join(" ")
        )
    }

    fn works(self, program: &Path) -> bool {
        let mut command = Command::new(program);
        let command = command
            .arg(self.version)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }

    /// Unpacks the packages, and writes a script next to them that starts the program. The directory is renamed into its place
    /// as a whole, because other processes may do the same at the same time.
    fn unpack(self, home: &Path, libraries: Vec<String>) -> Result<(), String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let failed = |error: io::Error| format!("cannot unpack it: {error}");
        let new = packages().join(format!("{}.{}.{number}", self.name, std::process::id()));
        fs::create_dir_all(&new).map_err(failed)?;
        let unpacked = self.unpack_into(&new, libraries);
        if unpacked.is_ok() {
            // A directory that another process has put there meanwhile has the same content.
            let _ = fs::remove_dir_all(home);
            let _ = fs::rename(&new, home);
        }
        let _ = fs::remove_dir_all(new);
        unpacked
    }

    fn unpack_into(self, home: &Path, libraries: Vec<String>) -> Result<(), String> {
        let failed = |error: io::Error| format!("cannot unpack it: {error}");
        let own = self.packages.iter().map(|&name| name.to_owned());
        let all: Vec<_> = own.chain(libraries).collect();
        if let Err(reason) = download(home, &all) {
            // The lists of packages may be old, or not there yet.
            run(Command::new("apt-get").arg("update")).map_err(|it| format!("{reason}\n{it}"))?;
            download(home, &all)?;
        }
        for file in fs::read_dir(home).map_err(failed)? {
            let file = file.map_err(failed)?.path();
            if file.extension().is_some_and(|it| it == "deb") {
                run(Command::new("dpkg").arg("-x").arg(&file).arg(home))?;
            }
        }
        let script = format!(
            "#!/bin/sh\nhome=$(dirname \"$0\")\nexport LD_LIBRARY_PATH=\"$(echo \"$home\"/usr/lib/*-linux-*)\"\nexec \"$home/{}\" \"$@\"\n",
            self.path
        );
        let program = home.join(self.name);
        fs::write(&program, script).map_err(failed)?;
        run(Command::new("chmod").arg("+x").arg(program))
    }

    /// The packages that the program depends on.
    fn libraries(self) -> Result<Vec<String>, String> {
        let output = Command::new("apt-cache")
            .arg("depends")
            .args(self.packages)
            .output()
            .map_err(|error| format!("cannot list its dependencies with apt-cache: {error}"))?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = output
            .lines()
            .filter_map(|line| line.trim().strip_prefix("Depends: "))
            .filter(|name| !NOT_NEEDED.contains(name) && !self.packages.contains(name));
        Ok(named.map(str::to_owned).collect())
    }
}

/// Reports a skipped test, even if the output of tests is not shown.
pub fn left_out(what: &str) {
    let _ = writeln!(io::stderr(), "{LEFT_OUT}{what}");
}

fn has_apt() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join("apt-get").is_file())
}

/// The directory of the unpacked packages, below the root of the repository.
fn packages() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().unwrap_or(root);
    root.join("target").join("packages")
}

fn download(home: &Path, packages: &[String]) -> Result<(), String> {
    let mut command = Command::new("apt-get");
    run(command.arg("download").args(packages).current_dir(home))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output();
    let failed = |how: String| Err(format!("{command:?} {how}"));
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => failed(format!(
            "failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => failed(format!("cannot be started: {error}")),
    }
}
