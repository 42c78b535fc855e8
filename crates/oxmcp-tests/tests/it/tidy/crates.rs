//! Dependencies of the crates: the crates that each may depend on, and the crates that do no I/O.

use std::collections::BTreeMap;

use super::{
    code::mentions,
    none,
    source::{Source, files, library},
};

/// Each crate with the crates that it may depend on.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("oxmcp-macros", &[]),
    ("oxmcp-json", &[]),
    ("oxmcp-schema", &["oxmcp-json", "oxmcp-macros"]),
    ("oxmcp-protocol", &["oxmcp-json"]),
    ("oxmcp-auth", &[]),
    (
        "oxmcp",
        &[
            "oxmcp-auth",
            "oxmcp-json",
            "oxmcp-macros",
            "oxmcp-protocol",
            "oxmcp-schema",
        ],
    ),
    ("oxmcp-apps", &["oxmcp"]),
    ("oxmcp-cli", &["oxmcp", "oxmcp-apps", "oxmcp-group"]),
    ("oxmcp-group", &["oxmcp"]),
    ("oxmcp-opentelemetry", &["oxmcp"]),
    ("oxmcp-redis", &["oxmcp"]),
    ("oxmcp-skills", &["oxmcp"]),
    ("oxmcp-sqlite", &["oxmcp"]),
];

/// The crates that tie the SDK to something which often changes: to another crate which has breaking releases or may be in a program
/// only once, to an extension of the protocol with its own revisions, or to the files of hosts. They use the SDK's public API alone and
/// have versions of their own, so that such a change does not force a release of the SDK.
const HAS_OWN_VERSION: &[&str] = &[
    "oxmcp-apps",
    "oxmcp-cli",
    "oxmcp-group",
    "oxmcp-opentelemetry",
    "oxmcp-redis",
    "oxmcp-skills",
    "oxmcp-sqlite",
];

/// The pure crates, which do no I/O: they know of the world outside only their arguments.
const PURE: &[&str] = &["oxmcp-json", "oxmcp-schema", "oxmcp-protocol", "oxmcp-auth"];

/// The I/O crates that a pure crate may use: keys and code verifiers need the randomness of the operating system.
const MAY_STAND_ON: &[(&str, &str)] = &[("oxmcp-auth", "getrandom")];

/// Crates that do I/O, read the clock, spawn tasks, or give randomness.
const IO_CRATES: &[&str] = &[
    "async-io",
    "getrandom",
    "hyper",
    "hyper-util",
    "mio",
    "rand",
    "reqwest",
    "rustix",
    "smol",
    "socket2",
    "tokio",
    "tokio-util",
];

/// Paths of the same kind, as written in code.
const IO_PATHS: &[&str] = &[
    "tokio",
    "std::env",
    "std::net",
    "std::fs",
    "std::process",
    "std::thread",
    "io::stdin",
    "io::stdout",
    "Instant::now",
    "SystemTime::now",
];

/// The manifest of a crate.
struct Manifest {
    name: String,
    /// The dependencies of the crate and of its build, each with its specification. Dev-dependencies are left out.
    dependencies: BTreeMap<String, String>,
    has_version_of_workspace: bool,
}

impl Manifest {
    fn of(text: &str) -> Self {
        let mut manifest = Self {
            name: String::new(),
            dependencies: BTreeMap::new(),
            has_version_of_workspace: false,
        };
        let mut section = String::new();
        for line in text.lines() {
            if let Some(header) = line.strip_prefix('[') {
                section = header.trim_end_matches(']').to_owned();
                let table = section.rsplit_once("dependencies.");
                if let Some((_, name)) = table.filter(|_| !section.starts_with("dev-")) {
                    manifest.dependencies.insert(name.to_owned(), String::new());
                }
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let key = key.trim();
            let is_for_tests = section.contains("dev-dependencies");
            if section == "package" {
                manifest.has_version_of_workspace |= key == "version.workspace";
                if key == "name" {
                    value
                        .trim()
                        .trim_matches('"')
                        .clone_into(&mut manifest.name);
                }
            } else if section.ends_with("dependencies") && !is_for_tests {
                let name = key.split('.').next().unwrap_or(key);
                let said = manifest.dependencies.entry(name.to_owned()).or_default();
                said.push_str(line);
            } else if let Some((_, name)) = section
                .rsplit_once("dependencies.")
                .filter(|_| !is_for_tests)
            {
                let said = manifest.dependencies.entry(name.to_owned()).or_default();
                said.push_str(line);
            }
        }
        manifest
    }
}

/// The manifests of the published crates, and the manifest of the workspace.
fn manifests() -> (Vec<Manifest>, Manifest) {
    let all = files();
    let is_crate = |source: &&Source| {
        let inner = source.path.strip_prefix("crates/");
        inner
            .and_then(|path| path.split_once('/'))
            .is_some_and(|(_, file)| file == "Cargo.toml")
            && !source.text.contains("publish = false")
    };
    let crates = all
        .iter()
        .filter(is_crate)
        .map(|source| Manifest::of(&source.text));
    let workspace = all
        .iter()
        .find(|source| source.path == "Cargo.toml")
        .unwrap();
    (crates.collect(), Manifest::of(&workspace.text))
}

/// The violations of a crate in its dependencies on the workspace's other crates, and in its version.
fn walls(crates: &Manifest, workspace: &Manifest) -> Vec<String> {
    let name = &crates.name;
    let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(of, _)| of == name) else {
        return vec![format!(
            "{name}: say in MAY_DEPEND_ON what it may depend on"
        )];
    };
    let mut wrong = Vec::new();
    let has_own = HAS_OWN_VERSION.contains(&&**name);
    if crates.has_version_of_workspace == has_own {
        let whose = if has_own {
            "its own"
        } else {
            "the workspace's"
        };
        wrong.push(format!("{name}: its version is not {whose}"));
    }
    for (other, said) in &crates.dependencies {
        if !other.starts_with("oxmcp") {
            continue;
        }
        if !allowed.contains(&other.as_str()) {
            wrong.push(format!("{name} must not depend on {other}"));
        }
        let of_workspace = workspace.dependencies.get(other);
        let is_exact = |said: &str| said.contains("\"=");
        let exact = is_exact(said) || of_workspace.is_some_and(|said| is_exact(said));
        if exact == has_own {
            let not = if has_own { "" } else { "not " };
            wrong.push(format!(
                "{name}: its dependency on {other} is {not}exact (version = \"=…\")"
            ));
        }
    }
    wrong
}

#[test]
fn crate_dependencies_go_downwards_with_exact_versions() {
    let (crates, workspace) = manifests();
    let mut wrong: Vec<_> = crates.iter().flat_map(|it| walls(it, &workspace)).collect();
    for (name, _) in MAY_DEPEND_ON {
        if !crates.iter().any(|it| it.name == *name) {
            wrong.push(format!("{name}: there is no such crate"));
        }
    }
    none(&wrong);
}

/// A published package is complete by itself. A link to the licence at the root would be unpacked as a file that contains a path.
#[test]
fn packages_include_licenses_and_descriptions() {
    const SAID: [&str; 7] = [
        "license.workspace = true",
        "rust-version.workspace = true",
        "documentation = \"https://docs.rs/",
        "description = ",
        "keywords = [",
        "categories = [",
        "readme = \"README.md\"",
    ];
    let mut wrong = Vec::new();
    for Manifest { name, .. } in manifests().0 {
        let text_of = |file: &str| super::source::read(&format!("crates/{name}/{file}")).text;
        let manifest = text_of("Cargo.toml");
        let missing = SAID.iter().filter(|said| !manifest.contains(**said));
        wrong.extend(missing.map(|said| format!("{name}: its manifest lacks {said}")));
        if !manifest.contains("\"/README.md\", \"/LICENSE-*\"]") {
            wrong.push(format!("{name}: its package has no README or no licence"));
        }
        let has_tests = super::source::root()
            .join(format!("crates/{name}/tests"))
            .exists();
        if has_tests
            && !["\"/tests\"", "autotests = false"]
                .iter()
                .any(|it| manifest.contains(it))
        {
            wrong.push(format!(
                "{name}: its package lacks the tests that cargo looks for"
            ));
        }
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let path = super::source::root().join(format!("crates/{name}/{licence}"));
            if path.is_symlink() || text_of(licence) != super::source::read(licence).text {
                wrong.push(format!(
                    "{name}: {licence} is no copy of the one at the root"
                ));
            }
        }
    }
    none(&wrong);
}

/// `cargo run --example quickstart` in a clean clone builds no more than a server builds.
#[test]
fn examples_add_no_required_dependencies() {
    let manifest = |path: &str| Manifest::of(&super::source::read(path).text);
    let sdk = manifest("crates/oxmcp/Cargo.toml").dependencies;
    let is_needed = |said: &str| !said.contains("optional = true");
    let more = manifest("examples/Cargo.toml").dependencies;
    let more = more.iter().filter(|(name, said)| {
        let is_built = *name == "oxmcp" || sdk.get(*name).is_some_and(|said| is_needed(said));
        is_needed(said) && !is_built
    });
    let say =
        |(name, _): (&String, _)| format!("{name} is built for every example: make it optional");
    none(&more.map(say).collect::<Vec<_>>());
}

/// A program without authorization, such as a server over stdio, is built without the dependencies of authorization.
#[test]
fn authorization_dependencies_are_optional() {
    let text = super::source::read("crates/oxmcp/Cargo.toml").text;
    let dependencies = Manifest::of(&text).dependencies;
    let (_, features) = text.split_once("[features]\n").unwrap();
    let (features, _) = features.split_once("\n[").unwrap();
    let mut wrong = Vec::new();
    for name in ["oxmcp-auth", "webbrowser", "fs4", "keyring-core"] {
        if !dependencies[name].contains("optional = true") {
            wrong.push(format!("{name} is built for everybody"));
        }
    }
    let mut feature = "";
    for line in features.lines().filter(|line| !line.starts_with('#')) {
        if !line.starts_with([' ', ']']) {
            feature = line.split(' ').next().unwrap();
        }
        let asks = ["auth", "keyring"].contains(&feature);
        let words = line.split('"').skip(1).step_by(2);
        let words = words.map(|word| word.strip_prefix("dep:").unwrap_or(word));
        let needed = |it: &&str| {
            ["auth", "oxmcp-auth", "webbrowser", "fs4"].contains(it) || it.starts_with("keyring")
        };
        let found = words.filter(needed).filter(|_| !asks);
        wrong.extend(found.map(|it| format!("the feature {feature} brings {it}")));
    }
    none(&wrong);
}

#[test]
fn protocol_crates_do_no_io() {
    let (crates, _) = manifests();
    let mut wrong = Vec::new();
    for manifest in crates.iter().filter(|it| PURE.contains(&it.name.as_str())) {
        let io = manifest
            .dependencies
            .keys()
            .filter(|name| IO_CRATES.contains(&name.as_str()));
        wrong.extend(io.map(|name| format!("{}: {name} is a dependency", manifest.name)));
    }
    let mut sources = library();
    sources.retain(|source| {
        PURE.contains(&source.crate_name().unwrap_or_default()) || is_pure_module(source)
    });
    wrong.extend(mentions(&sources, IO_PATHS));
    none(&wrong);
}

/// Whether the file belongs to the lowest modules of `oxmcp`, which do no I/O either.
fn is_pure_module(source: &Source) -> bool {
    source
        .module()
        .is_some_and(|module| ["error", "limits"].contains(&module))
}

/// A crate could use the I/O of its dependencies, so none of them may do I/O, direct or indirect.
#[test]
fn dependencies_of_protocol_crates_do_no_io() {
    let lock = super::source::read("Cargo.lock").text;
    let below = |name: &str| closure(&lock, name);
    let mut wrong = Vec::new();
    for name in PURE {
        let io = below(name)
            .into_iter()
            .filter(|it| IO_CRATES.contains(&it.as_str()))
            .filter(|it| !MAY_STAND_ON.contains(&(*name, it.as_str())));
        wrong.extend(io.map(|it| format!("{name} stands on {it}")));
    }
    none(&wrong);
}

/// All direct and indirect dependencies of a package in the lock file. The lock file does not tell dev-dependencies apart, so the
/// workspace's own packages count with the dependencies of their manifests.
fn closure(lock: &str, name: &str) -> Vec<String> {
    let packages: BTreeMap<_, _> = lock.split("[[package]]").filter_map(package).collect();
    let (crates, _) = manifests();
    let mut found: Vec<String> = Vec::new();
    let mut open = vec![name.to_owned()];
    while let Some(next) = open.pop() {
        let own = crates.iter().find(|manifest| manifest.name == next);
        let below: Vec<String> = match own {
            Some(manifest) => manifest.dependencies.keys().cloned().collect(),
            None => packages.get(&next).cloned().unwrap_or_default(),
        };
        for package in below {
            if !found.contains(&package) {
                found.push(package.clone());
                open.push(package);
            }
        }
    }
    found
}

/// The name of a package in the lock file, and the names of its dependencies.
fn package(text: &str) -> Option<(String, Vec<String>)> {
    let name = text.split("name = \"").nth(1)?.split('"').next()?;
    let below = text.split("dependencies = [").nth(1).unwrap_or_default();
    let below = below.split(']').next().unwrap_or_default();
    let names = below.split('"').skip(1).step_by(2);
    let names = names.map(|it| it.split(' ').next().unwrap_or(it).to_owned());
    Some((name.to_owned(), names.collect()))
}

#[test]
fn broken_walls_are_detected() {
    let workspace =
        Manifest::of("[workspace.dependencies]\noxmcp-json = { version = \"=0.1.0\" }\n");
    let manifest = Manifest::of(
        "[package]\nname = \"oxmcp-protocol\"\nversion.workspace = true\n[dependencies]\noxmcp-json.workspace = true\n\
         oxmcp-schema = { version = \"0.1.0\" }\ntokio = \"1\"\n[dev-dependencies]\noxmcp = \"1\"\n",
    );
    assert_eq!(
        walls(&manifest, &workspace),
        [
            "oxmcp-protocol must not depend on oxmcp-schema",
            "oxmcp-protocol: its dependency on oxmcp-schema is not exact (version = \"=…\")"
        ]
    );
    assert!(manifest.dependencies.contains_key("tokio"));
    let apart = "[package]\nname = \"oxmcp-opentelemetry\"\nversion = \"0.3.0\"\n[dependencies]\noxmcp = { version = \"0.1.0\" }\n";
    assert!(walls(&Manifest::of(apart), &workspace).is_empty());
    let bound = apart.replace("version = \"0.", "version = \"=0.");
    assert_eq!(walls(&Manifest::of(&bound), &workspace).len(), 1);
    let bound = apart.replace("version = \"0.3.0\"", "version.workspace = true");
    assert_eq!(walls(&Manifest::of(&bound), &workspace).len(), 1);
    assert!(
        !walls(
            &Manifest::of("[package]\nname = \"oxmcp-json\"\n"),
            &workspace
        )
        .is_empty()
    );
    assert!(
        !walls(
            &Manifest::of("[package]\nname = \"oxmcp-new\"\n"),
            &workspace
        )
        .is_empty()
    );
}

#[test]
fn indirect_io_is_detected() {
    let lock = "[[package]]\nname = \"a\"\ndependencies = [\n \"b 1.0.0\",\n]\n[[package]]\nname = \"b\"\ndependencies = [\n \"mio\",\n]\n";
    assert_eq!(closure(lock, "a"), ["b", "mio"]);
}
