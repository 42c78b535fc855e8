//! Projects: `oxmcp new`, `server.json` and bundles.

use std::{fs, io::Read, path::Path, process::Command};

use serde_json::{Value, json};

use crate::support::{folder, run_at};

fn cargo_project(home: &Path, readme: &str) {
    let manifest = r#"
[package]
name = "tea-mcp"
version = "1.2.3"
description = "Serves tea"
license = "MIT"
authors = ["Ann <ann@example.com>"]
repository = "https://github.com/me/tea"
"#;
    fs::write(home.join("Cargo.toml"), manifest).unwrap();
    fs::write(home.join("README.md"), readme).unwrap();
}

/// What the schema of the registry requires, of 2025-12-11.
fn assert_valid(server: &Value) {
    let text = |value: &Value, name: &str| {
        value[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name}: {value}"))
            .to_owned()
    };
    assert!(text(server, "$schema").ends_with("/2025-12-11/server.schema.json"));
    let name = text(server, "name");
    assert_eq!(name.matches('/').count(), 1, "{name}");
    assert!((1..=100).contains(&text(server, "description").chars().count()));
    assert!(text(server, "version").len() <= 255);
    if let Some(repository) = server.get("repository") {
        assert!(text(repository, "url").starts_with("https://"));
        text(repository, "source");
    }
    for package in server["packages"].as_array().into_iter().flatten() {
        text(package, "identifier");
        text(&package["transport"], "type");
        if text(package, "registryType") == "mcpb" {
            assert_eq!(package.get("version"), None);
            let digest = text(package, "fileSha256");
            assert!(
                digest.len() == 64 && digest.chars().all(|it| matches!(it, '0'..='9' | 'a'..='f'))
            );
        }
    }
}

#[test]
fn package_describes_a_crate() {
    let home = folder("package-cargo");
    cargo_project(&home, "# Tea\n\n- `mcp-name: io.github.me/tea-mcp`\n");
    let (out, err, code) = run_at(&home, &["package"]);
    assert_eq!(
        (out.as_str(), err.as_str(), code),
        ("./server.json written\n", "", 0)
    );
    let text = fs::read_to_string(home.join("server.json")).unwrap();
    insta::assert_snapshot!(text, @r#"
    {
      "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
      "name": "io.github.me/tea-mcp",
      "description": "Serves tea",
      "repository": {
        "source": "github",
        "url": "https://github.com/me/tea"
      },
      "version": "1.2.3",
      "packages": [
        {
          "identifier": "tea-mcp",
          "registryType": "cargo",
          "transport": {
            "type": "stdio"
          },
          "version": "1.2.3"
        }
      ]
    }
    "#);
    assert_valid(&serde_json::from_str(&text).unwrap());
    let (_, _, code) = run_at(&home, &["package", "--check"]);
    assert_eq!(code, 0);

    // What the user has written stays, and the version follows the manifest.
    let mut server: Value = serde_json::from_str(&text).unwrap();
    server["title"] = json!("Tea");
    server["packages"][0]["environmentVariables"] =
        json!([{"name": "TEA_TOKEN", "isSecret": true}]);
    server["packages"].as_array_mut().unwrap().push(json!({"registryType": "nuget", "identifier": "Tea", "version": "9.0.0", "transport": {"type": "stdio"}}));
    server["packages"].as_array_mut().unwrap().push(json!({"registryType": "cargo", "identifier": "other", "version": "1.0.0", "transport": {"type": "stdio"}}));
    fs::write(home.join("server.json"), server.to_string()).unwrap();
    let manifest = fs::read_to_string(home.join("Cargo.toml")).unwrap();
    fs::write(home.join("Cargo.toml"), manifest.replace("1.2.3", "1.3.0")).unwrap();
    let (out, _, code) = run_at(&home, &["package", "--check"]);
    assert_eq!((out.as_str(), code), ("./server.json differs\n", 1));
    let (_, _, code) = run_at(
        &home,
        &[
            "package",
            "--oci",
            "ghcr.io/me/tea:1.3.0",
            "--remote",
            "https://tea.example.com/mcp",
        ],
    );
    assert_eq!(code, 0);
    let server: Value =
        serde_json::from_str(&fs::read_to_string(home.join("server.json")).unwrap()).unwrap();
    assert_valid(&server);
    assert_eq!(
        (&server["title"], &server["version"]),
        (&json!("Tea"), &json!("1.3.0"))
    );
    let kinds: Vec<_> = server["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["registryType"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["cargo", "oci", "nuget", "cargo"]);
    assert_eq!(
        server["packages"][0]["environmentVariables"][0]["name"],
        "TEA_TOKEN"
    );
    assert_eq!(server["remotes"][0]["type"], "streamable-http");
}

#[test]
fn inherited_readme_is_that_of_the_workspace() {
    let home = folder("package-workspace");
    fs::create_dir(home.join("tea")).unwrap();
    fs::write(
        home.join("Cargo.toml"),
        "[workspace]\nmembers = [\"tea\"]\n[workspace.package]\nreadme = \"README.md\"\n",
    )
    .unwrap();
    cargo_project(&home.join("tea"), "# Other\n");
    let path = home.join("tea/Cargo.toml");
    let manifest = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{manifest}readme.workspace = true\n")).unwrap();
    fs::write(home.join("README.md"), "mcp-name: io.github.me/tea-mcp\n").unwrap();
    let (_, err, code) = run_at(&home, &["package", "tea"]);
    assert_eq!((err.as_str(), code), ("", 0));
    // A package that is not published is none.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}publish = false\n")).unwrap();
    let package = json!({"name": "tea", "version": "1.0.0", "private": true});
    fs::write(home.join("tea/package.json"), package.to_string()).unwrap();
    let remote = ["package", "tea", "--remote", "https://tea.example.com/mcp"];
    let (_, err, code) = run_at(&home, &remote);
    assert_eq!((err.as_str(), code), ("", 0));
    let server = fs::read_to_string(home.join("tea/server.json")).unwrap();
    let server: Value = serde_json::from_str(&server).unwrap();
    assert_eq!(server["remotes"][0]["url"], "https://tea.example.com/mcp");
}

#[test]
fn package_reports_what_the_registry_refuses() {
    let home = folder("package-marks");
    for (readme, expected) in [
        (
            "# Tea",
            "the README has no line `mcp-name: io.github.me/tea-mcp`",
        ),
        (
            "<!-- mcp-name: io.github.me/tea-mcp -->",
            "in a comment, which the page of a crate does not have",
        ),
        ("mcp-name: io.github.me/tea-mcp.", "followed by white space"),
    ] {
        cargo_project(&home, readme);
        let (_, err, code) = run_at(&home, &["package", "--name", "io.github.me/tea-mcp"]);
        assert!(err.contains(expected), "{err}");
        assert_eq!(code, 1);
    }
    let home = folder("package-npm");
    let manifest = json!({"name": "@me/tea", "version": "1.0.0", "description": "t".repeat(120), "repository": {"url": "git+https://github.com/me/tea.git"}});
    fs::write(home.join("package.json"), manifest.to_string()).unwrap();
    let (_, err, code) = run_at(&home, &["package"]);
    assert!(
        err.contains("package.json has no `mcpName`") && err.contains("120 characters"),
        "{err}"
    );
    assert_eq!(code, 1);
    let home = folder("package-pypi");
    fs::write(home.join("pyproject.toml"), "[project]\nname = \"tea\"\nversion = \"1.0\"\ndescription = \"Tea\"\nreadme = \"README.md\"\n").unwrap();
    fs::write(
        home.join("README.md"),
        "<!-- mcp-name: com.example/tea -->\n",
    )
    .unwrap();
    let (_, err, code) = run_at(&home, &["package"]);
    assert_eq!((err.as_str(), code), ("", 0));
    let (_, err, code) = run_at(&folder("package-nothing"), &["package", "--name", "a/b"]);
    assert!(err.contains("found no version"), "{err}");
    assert_eq!(code, 2);
}

#[test]
fn bundles_are_reproducible() {
    let home = folder("package-bundle");
    cargo_project(&home, "mcp-name: io.github.me/tea-mcp\n");
    fs::write(home.join("tea"), b"\x7fELF and more").unwrap();
    fs::write(home.join("tea.exe"), b"MZ and more").unwrap();
    let args = [
        "package",
        "--json",
        "--binary=x86_64-unknown-linux-musl=tea",
        "--binary=x86_64-pc-windows-msvc=tea.exe",
    ];
    let (first, err, code) = run_at(&home, &args);
    assert_eq!(code, 0, "{err}");
    let first: Value = serde_json::from_str(&first).unwrap();
    let server: Value =
        serde_json::from_str(&fs::read_to_string(home.join("server.json")).unwrap()).unwrap();
    assert_valid(&server);
    let package = &server["packages"][2];
    assert_eq!(
        package["identifier"],
        "https://github.com/me/tea/releases/download/v1.2.3/tea-mcp-1.2.3-x86_64-pc-windows-msvc.mcpb"
    );
    assert_eq!(package["fileSha256"], first["bundles"][1]["sha256"]);
    // An entry of the same target keeps its variables, and the URL must be that of a release.
    let mut edited = server.clone();
    edited["packages"][2]["environmentVariables"] = json!([{"name": "TEA_TOKEN"}]);
    edited["packages"][2]["version"] = json!("1.2.2");
    fs::write(home.join("server.json"), edited.to_string()).unwrap();
    let mut elsewhere = args.to_vec();
    elsewhere.push("--bundle-url=https://tea.example.com/files");
    let (out, _, code) = run_at(&home, &elsewhere);
    assert!(out.contains("in no release"), "{out}");
    assert_eq!(code, 1);
    let server: Value =
        serde_json::from_str(&fs::read_to_string(home.join("server.json")).unwrap()).unwrap();
    assert_valid(&server);
    let package = &server["packages"][2];
    assert_eq!(package["environmentVariables"][0]["name"], "TEA_TOKEN");

    fs::remove_dir_all(home.join("dist")).unwrap();
    let (again, _, _) = run_at(&home, &args);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(first["bundles"], again["bundles"]);

    let file = fs::File::open(
        home.join("dist")
            .join(first["bundles"][0]["file"].as_str().unwrap()),
    )
    .unwrap();
    let mut archive = zip::ZipArchive::new(file).unwrap();
    let mut manifest = String::new();
    archive
        .by_name("manifest.json")
        .unwrap()
        .read_to_string(&mut manifest)
        .unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(
        manifest["server"]["mcp_config"]["command"],
        "${__dirname}/server/tea-mcp"
    );
    assert_eq!(manifest["compatibility"]["platforms"], json!(["linux"]));
    assert_eq!(manifest["author"]["name"], "Ann");
    let program = archive.by_name("server/tea-mcp").unwrap();
    assert_eq!(program.unix_mode().unwrap() & 0o777, 0o755);

    let (_, err, code) = run_at(
        &home,
        &["package", "--binary", "aarch64-apple-darwin=tea.exe"],
    );
    assert!(err.contains("it is no program for darwin"), "{err}");
    assert_eq!(code, 2);
}

#[test]
fn new_projects_have_their_files() {
    let home = folder("new");
    let (_, err, code) = run_at(&home, &["new", "tea"]);
    assert!(err.contains("cargo test") && code == 0, "{err}");
    let manifest = fs::read_to_string(home.join("tea/Cargo.toml")).unwrap();
    assert!(
        manifest.contains("name = \"tea\"")
            && !manifest.contains('{'.to_string().repeat(2).as_str()),
        "{manifest}"
    );
    let (_, err, code) = run_at(&home, &["new", "tea"]);
    assert!(err.contains("choose another name") && code == 2, "{err}");
    let (_, err, code) = run_at(&home, &["new", "a b"]);
    assert!(
        err.contains("cannot be the name of a project") && code == 2,
        "{err}"
    );
}

/// It compiles the SDK twice.
#[test]
fn new_projects_compile() {
    let home = folder("new-compiles");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (name, option) in [("tea", None), ("tea-client", Some("--client"))] {
        let mut args = vec!["new", name];
        args.extend(option);
        let (_, err, code) = run_at(&home, &args);
        assert_eq!(code, 0, "{err}");
        let path = home.join(name).join("Cargo.toml");
        let mut manifest = fs::read_to_string(&path).unwrap();
        let sdk = crates.join("oxmcp");
        manifest.push_str(&format!(
            "\n[patch.crates-io]\noxmcp = {{ path = {:?} }}\n\n[workspace]\n",
            sdk.display().to_string()
        ));
        fs::write(&path, manifest).unwrap();
        let checked = Command::new(env!("CARGO"))
            .args(["check", "--all-targets", "--offline", "--manifest-path"])
            .arg(&path)
            .env("CARGO_TARGET_DIR", home.join("target"))
            .output()
            .unwrap();
        assert!(
            checked.status.success(),
            "{}",
            String::from_utf8_lossy(&checked.stderr)
        );
    }
}
