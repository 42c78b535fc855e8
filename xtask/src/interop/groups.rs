//! The official servers together: behind our gateway, and in a group of our client. `interop/servers.json` lists them.

use std::{ffi::OsString, fs, path::PathBuf, process::Command};

use super::{
    cases::{GROUPS, Group, Runtime},
    command::Parties,
    runner::Case,
};
use crate::{
    setup,
    step::{self, Outcome, root},
};

/// The folder for the files of the servers of one case.
fn folder(case: &str) -> PathBuf {
    setup::scratch().join("servers").join(case)
}

/// Makes the folder of a case anew, with a repository that has one commit.
pub(crate) fn prepare(case: &str) -> Outcome {
    let folder = folder(case);
    let repository = folder.join("repository");
    let failed = |error| format!("cannot make {}: {error}", repository.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&repository).map_err(failed)?;
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&repository).args(args);
        step::run_quietly("make a repository", &mut git)
    };
    git(&["init", "--quiet"])?;
    let author = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"];
    let commit = ["commit", "--quiet", "--allow-empty", "--message", "first"];
    git(&[author.as_slice(), &commit].concat())
}

/// The file of the servers, and its variables.
pub(crate) fn servers(case: &str, parties: &Parties) -> Vec<OsString> {
    let interop = root().join("interop");
    let variable = |name: &str, value: PathBuf| {
        let mut word = OsString::from(format!("{name}="));
        word.push(value);
        word
    };
    vec![
        interop.join("servers.json").into(),
        variable("NODE", parties.runtime(Runtime::Node).clone()),
        variable("NPM", interop.join("node_modules/@modelcontextprotocol")),
        variable("PYTHON", parties.tools.servers.clone()),
        variable("INTEROP", interop),
        variable("SCRATCH", folder(case)),
    ]
}

/// The cases of our client with all servers at once.
pub(crate) fn selected(word: &str) -> impl Iterator<Item = &'static Group> {
    GROUPS.iter().filter(move |it| it.name.contains(word))
}

pub(crate) fn case(group: &Group, parties: &Parties) -> Case {
    let mut command = Command::new(parties.us.with_file_name("interop-group"));
    command.args(group.args).args(servers(group.name, parties));
    Case {
        name: group.name,
        revision: None,
        command,
        clean_exit: false,
        says: Vec::new(),
    }
}
