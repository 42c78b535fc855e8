//! `oxmcp package`: writes `server.json` and bundles, and checks the marks of the owner.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use super::{
    bundle::{Binary, Bundle},
    manifest::{self, Manifest},
    marker,
    server_json::{ServerJson, check_name, github_name, web_url},
};
use crate::{
    args::Package,
    failure::{Failure, Reason, Result},
    output,
    terminal::Terminal,
};

const FILE: &str = "server.json";

pub(crate) fn run(args: &Package, as_json: bool, terminal: &Terminal) -> Result<()> {
    let folder = args.folder.as_path();
    let manifests = manifest::read(folder, &args.registry)?;
    let existing = existing(folder)?;
    let name = name(args, &manifests, &existing)?;
    let (mut file, mut problems) = ServerJson::new(name.clone(), &manifests, &existing)?;
    file.add_packages(&manifests, &args.oci, &existing);
    for url in &args.remote {
        if !file
            .remotes
            .iter()
            .any(|it| it.get("url").is_some_and(|it| it == url))
        {
            file.remotes
                .push(json!({"type": "streamable-http", "url": url}));
        }
    }
    let bundles = bundles(args, &mut file, &manifests, &existing)?;
    problems.extend(file.problems_of_bundles());
    if file.packages.is_empty() && file.remotes.is_empty() {
        return Err(Failure::usage(
            "there is nothing to describe: no Cargo.toml, package.json or pyproject.toml with a package; pass `--oci`, `--remote` or `--binary`",
        ));
    }
    problems.extend(manifests.iter().filter_map(|it| marker::problem(it, &name)));
    if !args.oci.is_empty() {
        problems.extend(marker::problem_of_image(folder, &name));
    }
    let text = serde_json::to_string_pretty(&file).map_err(std::io::Error::from)? + "\n";
    let mut written = vec![(folder.join(FILE), text.into_bytes())];
    for Bundle { file, bytes, .. } in &bundles {
        written.push((args.output.join(file), bytes.clone()));
    }
    let mut changed = Vec::new();
    for (path, bytes) in &written {
        if fs::read(path).is_ok_and(|old| old == *bytes) {
            continue;
        }
        changed.push(path.display().to_string());
        if !args.check {
            write(path, bytes)?;
        }
    }
    let is_stale = args.check && !changed.is_empty();
    if as_json {
        let bundles = bundles
            .iter()
            .map(|it| json!({"file": it.file, "sha256": it.sha256}));
        let bundles: Vec<_> = bundles.collect();
        output::json(
            &json!({"name": name, "changed": changed, "bundles": bundles, "problems": problems}),
        )?;
    } else {
        let verb = if args.check { "differs" } else { "written" };
        for path in &changed {
            output::text(&format!("{path} {verb}"))?;
        }
        for Bundle { file, sha256, .. } in &bundles {
            output::text(&format!("{sha256}  {file}"))?;
        }
        for problem in &problems {
            terminal.note(problem);
        }
        if changed.is_empty() {
            terminal.note("everything is up to date");
        }
    }
    match problems.is_empty() && !is_stale {
        true => Ok(()),
        false => Err(Failure::shown(Reason::Refused)),
    }
}

fn existing(folder: &Path) -> Result<Map<String, Value>> {
    let path = folder.join(FILE);
    let failed = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("could not read {}: {error}", path.display()))
    };
    if !path.is_file() {
        return Ok(Map::new());
    }
    let text = fs::read_to_string(&path).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

/// The name of the server: that of the command line, of the files, or one made from the repository.
fn name(args: &Package, manifests: &[Manifest], existing: &Map<String, Value>) -> Result<String> {
    let of_readme = |it: &Manifest| it.readme.as_deref().and_then(marker::name_in);
    let name = args
        .name
        .clone()
        .or_else(|| existing.get("name")?.as_str().map(str::to_owned))
        .or_else(|| manifests.iter().find_map(|it| it.mcp_name.clone()))
        .or_else(|| manifests.iter().find_map(of_readme))
        .or_else(|| manifests.iter().find_map(github_name));
    let name = name.ok_or_else(|| {
        Failure::usage("the server has no name in the registry; pass `--name io.github.me/weather`")
    })?;
    check_name(&name)?;
    Ok(name)
}

/// Makes the bundles, and adds them to the file.
fn bundles(
    args: &Package,
    file: &mut ServerJson,
    manifests: &[Manifest],
    existing: &Map<String, Value>,
) -> Result<Vec<Bundle>> {
    let mut bundles = Vec::new();
    if args.binary.is_empty() {
        return Ok(bundles);
    }
    let manifest = manifests.first().ok_or_else(|| {
        Failure::usage(
            "a bundle needs a Cargo.toml, package.json or pyproject.toml with its version",
        )
    })?;
    let url = bundle_url(args, manifest)?;
    let server = serde_json::to_value(&*file).map_err(std::io::Error::from)?;
    for word in &args.binary {
        let binary = Binary::parse(word)?;
        let bundle = binary.bundle(&file.name, manifest, &server)?;
        if bundles.iter().any(|it: &Bundle| it.file == bundle.file) {
            return Err(Failure::usage(format!(
                "two programs are for the same target: {word}"
            )));
        }
        file.add_bundle(
            &format!("{url}/{}", bundle.file),
            &bundle.sha256,
            &binary.target,
            existing,
        );
        bundles.push(bundle);
    }
    Ok(bundles)
}

/// The folder in which the bundles will be published.
fn bundle_url(args: &Package, manifest: &Manifest) -> Result<String> {
    if let Some(url) = &args.bundle_url {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let repository = manifest.repository.as_deref().and_then(web_url);
    let repository = repository.filter(|it| it.starts_with("https://github.com/"));
    let repository = repository.ok_or_else(|| {
        Failure::usage("the bundles have no URL, because the manifest has no repository on GitHub; pass `--bundle-url`")
    })?;
    Ok(format!(
        "{repository}/releases/download/v{}",
        manifest.version
    ))
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |error: std::io::Error| {
        Failure::new(
            Reason::Refused,
            format!("could not write {}: {error}", path.display()),
        )
    };
    if let Some(folder) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    fs::write(path, bytes).map_err(failed)
}
