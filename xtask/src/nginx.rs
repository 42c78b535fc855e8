//! nginx, as the system has it or unpacked from its packages, since without root nothing can be
//! installed.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    setup::scratch,
    step::{self, Outcome, headline},
};

/// What a server that only passes requests on can do without, or what every system has.
const NOT_NEEDED: &[&str] = &["nginx-common", "iproute2", "libc6"];

/// The program. Where there is none, and none can be had, says so loudly: what needs it is left out.
pub(crate) fn nginx() -> Option<PathBuf> {
    let installed = PathBuf::from("/usr/sbin/nginx");
    let home = scratch().join("nginx");
    let unpacked = home.join("nginx");
    if let Some(nginx) = [&installed, &unpacked].into_iter().find(|it| works(it)) {
        return Some(nginx.clone());
    }
    // Most systems have the libraries that it stands on.
    let alone = unpack(&home, &["nginx".to_owned()]);
    if alone.is_ok() && works(&unpacked) {
        return Some(unpacked);
    }
    let outcome = alone.and_then(|()| unpack(&home, &libraries()?));
    if outcome.is_ok() && works(&unpacked) {
        return Some(unpacked);
    }
    headline("!!! NOT TESTED: nginx in front of servers, ours and those of others !!!");
    let reason = outcome.err().unwrap_or_else(|| "it does not start".into());
    println!("{reason}\nto test it: apt-get install nginx");
    None
}

fn works(nginx: &Path) -> bool {
    let mut command = Command::new(nginx);
    let command = command
        .arg("-v")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Leaves a script `nginx` in the directory, which starts what was unpacked there.
fn unpack(home: &Path, packages: &[String]) -> Outcome {
    let failed = |error: std::io::Error| format!("cannot unpack nginx: {error}");
    fs::create_dir_all(home).map_err(failed)?;
    let mut download = Command::new("apt-get");
    download.arg("download").args(packages);
    step::run_quietly("download nginx", download.current_dir(home))?;
    for file in fs::read_dir(home).map_err(failed)? {
        let file = file.map_err(failed)?.path();
        if file.extension().is_some_and(|it| it == "deb") {
            let mut unpack = Command::new("dpkg");
            unpack.arg("-x").arg(&file).arg(home);
            step::run_quietly("unpack nginx", &mut unpack)?;
        }
    }
    let script = format!(
        "#!/bin/sh\nexport LD_LIBRARY_PATH=\"$(echo {home}/usr/lib/*-linux-*)\"\nexec {home}/usr/sbin/nginx \"$@\"\n",
        home = home.display(),
    );
    let program = home.join("nginx");
    fs::write(&program, script).map_err(failed)?;
    step::run_quietly(
        "let nginx be started",
        Command::new("chmod").arg("+x").arg(program),
    )
}

/// The packages that it stands on.
fn libraries() -> Outcome<Vec<String>> {
    let output = Command::new("apt-cache")
        .args(["depends", "nginx"])
        .output()
        .map_err(|error| format!("cannot ask apt-cache what nginx needs: {error}"))?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let named = output
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Depends: "))
        .filter(|name| !NOT_NEEDED.contains(name));
    Ok(named.map(str::to_owned).collect())
}
