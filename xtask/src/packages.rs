//! Programs that tests need, either installed on the system or unpacked from its packages, which needs no root. The packages of
//! a browser are installed where the tests run as root, as in containers: they are many.

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
    /// Other programs that do the same, as paths below `/`.
    others: &'static [&'static str],
    /// Whether root installs the packages, because they need many others.
    is_installed_by_root: bool,
    /// The argument with which the program prints its version and ends.
    version: &'static str,
}

/// The proxy in front of servers.
pub const NGINX: Program = Program {
    name: "nginx",
    path: "usr/sbin/nginx",
    packages: &["nginx"],
    others: &[],
    is_installed_by_root: false,
    version: "-v",
};

/// The store of many nodes.
pub const REDIS: Program = Program {
    name: "redis-server",
    path: "usr/bin/redis-server",
    packages: &["redis-server", "redis-tools"],
    others: &[],
    is_installed_by_root: false,
    version: "--version",
};

/// The browser that shows apps, in its variant without a desktop.
pub const CHROMIUM: Program = Program {
    name: "chromium",
    path: "usr/lib/chromium/chromium-headless-shell",
    packages: &["chromium-headless-shell"],
    others: &[
        "usr/bin/chromium",
        "usr/bin/chromium-browser",
        "usr/bin/google-chrome",
    ],
    is_installed_by_root: true,
    version: "--version",
};

impl Program {
    /// Returns the path of the program, and installs or unpacks its packages if it is missing. `None` if there is no `apt-get` to
    /// download them: then the tests that need it are [left out](left_out).
    ///
    /// # Errors
    /// If the program is missing, and `apt-get` is there but cannot provide it.
    pub fn bring(self) -> Result<Option<PathBuf>, String> {
        let installed = Path::new("/").join(self.path);
        let home = packages().join(self.name);
        let unpacked = home.join(self.name);
        let others = self.others.iter().map(|it| Path::new("/").join(it));
        let mut all = [installed.clone(), unpacked.clone()]
            .into_iter()
            .chain(others);
        if let Some(program) = all.find(|it| self.works(it)) {
            return Ok(Some(program));
        }
        if !has_apt() {
            return Ok(None);
        }
        if self.is_installed_by_root && is_root() {
            self.install().map_err(|reason| self.missing(&reason))?;
            return match self.works(&installed) {
                true => Ok(Some(installed)),
                false => Err(self.missing("the installed program does not start")),
            };
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
            "{} is not installed, and its package cannot be used: {reason}\ninstall it: apt-get install {}",
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

    /// Installs the packages, after other processes that install some have ended.
    fn install(self) -> Result<(), String> {
        let install = || {
            let mut command = Command::new("apt-get");
            command
                .args(["install", "--yes", "--no-install-recommends"])
                .args(["--option", "DPkg::Lock::Timeout=600"])
                .args(self.packages)
                .env("DEBIAN_FRONTEND", "noninteractive");
            run(&mut command)
        };
        install().or_else(|reason| {
            update().map_err(|it| format!("{reason}\n{it}"))?;
            install()
        })
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
            update().map_err(|it| format!("{reason}\n{it}"))?;
            download(home, &all)?;
        }
        for file in fs::read_dir(home).map_err(failed)? {
            let file = file.map_err(failed)?.path();
            if file.extension().is_some_and(|it| it == "deb") {
                run(Command::new("dpkg").arg("-x").arg(&file).arg(home))?;
            }
        }
        // Some libraries are in directories of their own, which the programs would find only below `/`.
        let script = format!(
            "#!/bin/sh\nhome=$(dirname \"$0\")\nlibraries=$(find \"$home\" -name '*.so*' -printf '%h:' | tr : '\\n' | sort -u | tr '\\n' :)\n\
             LD_LIBRARY_PATH=\"$libraries\" exec \"$home/{}\" \"$@\"\n",
            self.path
        );
        let program = home.join(self.name);
        fs::write(&program, script).map_err(failed)?;
        run(Command::new("chmod").arg("+x").arg(program))
    }

    /// The missing packages that the program depends on, directly or not.
    fn libraries(self) -> Result<Vec<String>, String> {
        let mut command = Command::new("apt-get");
        let command = command
            .args(["install", "--simulate", "--no-install-recommends"])
            .args(self.packages);
        let output = command
            .output()
            .map_err(|error| format!("cannot list its dependencies with apt-get: {error}"))?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let named = output
            .lines()
            .filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next())
            .filter(|name| !NOT_NEEDED.contains(name) && !self.packages.contains(name));
        Ok(named.map(str::to_owned).collect())
    }
}

/// Reports a skipped test, even if the output of tests is not shown.
pub fn left_out(what: &str) {
    let _ = writeln!(io::stderr(), "{LEFT_OUT}{what}");
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|it| it.stdout.trim_ascii() == b"0")
}

/// Brings the lists of packages up to date.
fn update() -> Result<(), String> {
    run(Command::new("apt-get").arg("update"))
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
