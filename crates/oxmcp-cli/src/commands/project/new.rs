//! `oxmcp new`: creates a project from a template.

use std::{fs, io, path::Path};

use crate::{
    args::New,
    failure::{Failure, Result},
    terminal::Terminal,
};

/// The version of the SDK that the template is for.
const SDK: &str = "0.1.0";

/// The files of a project.
struct Template {
    manifest: &'static str,
    main: &'static str,
    readme: &'static str,
}

const SERVER: Template = Template {
    manifest: include_str!("../../../templates/server.toml"),
    main: include_str!("../../../templates/server.rs"),
    readme: include_str!("../../../templates/server.md"),
};
const CLIENT: Template = Template {
    manifest: include_str!("../../../templates/client.toml"),
    main: include_str!("../../../templates/client.rs"),
    readme: include_str!("../../../templates/client.md"),
};

pub(crate) fn run(args: &New, terminal: &Terminal) -> Result<()> {
    let folder = Path::new(&args.name);
    let name = folder
        .file_name()
        .and_then(|it| it.to_str())
        .unwrap_or_default();
    if !is_package_name(name) {
        return Err(Failure::usage(format!(
            "{name:?} cannot be the name of a project; use a letter, and then letters, digits, '-' and '_'"
        )));
    }
    let failed = |error: io::Error| {
        let hint = match error.kind() {
            io::ErrorKind::AlreadyExists => "; choose another name",
            _ => "",
        };
        Failure::usage(format!("could not create {}: {error}{hint}", args.name))
    };
    let template = if args.client { CLIENT } else { SERVER };
    let fill = |text: &str| text.replace("{name}", name).replace("{oxmcp}", SDK);
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    // It fails if the folder exists.
    fs::create_dir(folder).map_err(failed)?;
    fs::create_dir(folder.join("src")).map_err(failed)?;
    for (path, text) in [
        ("Cargo.toml", fill(template.manifest)),
        ("src/main.rs", template.main.to_owned()),
        ("README.md", fill(template.readme)),
        (".gitignore", "/target\n".to_owned()),
    ] {
        fs::write(folder.join(path), text).map_err(failed)?;
    }
    terminal.note(&format!(
        "created {}; `cd {} && cargo test` tries it",
        args.name, args.name
    ));
    Ok(())
}

/// Whether cargo accepts the name.
fn is_package_name(name: &str) -> bool {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
    name.starts_with(|it: char| it.is_ascii_alphabetic())
        && name.len() <= 64
        && name.chars().all(is_plain)
        && !matches!(
            name,
            "test" | "core" | "std" | "alloc" | "proc_macro" | "oxmcp" | "tokio"
        )
}
