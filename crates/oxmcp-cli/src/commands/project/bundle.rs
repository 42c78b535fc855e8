//! Bundles: `.mcpb` files with a program and a manifest, which hosts install with a click. The same input gives the same bytes.

use std::{
    env, fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use zip::{CompressionMethod, DateTime, ZipWriter, write::SimpleFileOptions};

use super::manifest::Manifest;
use crate::failure::{Failure, Result};

/// The version of the format of manifests. Hosts read newer ones only after an update.
const MANIFEST_VERSION: &str = "0.3";
/// The maximum size of a program, which is compressed in memory.
const MAX_BYTES: u64 = 1 << 30;

/// A program, and the system that it was built for.
#[derive(Clone, Debug)]
pub(super) struct Binary {
    pub(super) target: String,
    platform: Platform,
    path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Platform {
    Linux,
    Mac,
    Windows,
}

impl Platform {
    /// The name in manifests.
    fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Mac => "darwin",
            Self::Windows => "win32",
        }
    }

    /// Whether a file is a program for the platform, by its first bytes.
    fn runs(self, program: &[u8]) -> bool {
        const MAC: [[u8; 4]; 3] = [
            [0xcf, 0xfa, 0xed, 0xfe],
            [0xce, 0xfa, 0xed, 0xfe],
            [0xca, 0xfe, 0xba, 0xbe],
        ];
        match self {
            Self::Linux => program.starts_with(b"\x7fELF"),
            Self::Windows => program.starts_with(b"MZ"),
            Self::Mac => MAC.iter().any(|it| program.starts_with(it)),
        }
    }
}

/// A bundle that was made.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub(super) file: String,
    pub(super) sha256: String,
    pub(super) bytes: Vec<u8>,
}

impl Binary {
    /// Reads `[TARGET=]FILE`.
    ///
    /// # Errors
    /// The system of the target is not one of those that hosts run on.
    pub(super) fn parse(word: &str) -> Result<Self> {
        let here = format!("{}-{}", env::consts::ARCH, env::consts::OS);
        let (target, path) = match word.split_once('=') {
            Some((target, path)) => (target.to_owned(), path),
            None => (here, word),
        };
        let platforms = [
            ("linux", Platform::Linux),
            ("darwin", Platform::Mac),
            ("macos", Platform::Mac),
            ("windows", Platform::Windows),
        ];
        let found = platforms.iter().find(|(name, _)| target.contains(name));
        let (_, platform) = found.ok_or_else(|| {
            Failure::usage(format!(
                "unknown target {target:?}; expected one such as x86_64-unknown-linux-gnu, aarch64-apple-darwin or x86_64-pc-windows-msvc"
            ))
        })?;
        Ok(Self {
            target,
            platform: *platform,
            path: PathBuf::from(path),
        })
    }

    /// Makes a bundle. `server` is the `server.json`, whose variables become settings that the host asks for.
    ///
    /// # Errors
    /// The file cannot be read, or is no program for the target.
    pub(super) fn bundle(&self, name: &str, manifest: &Manifest, server: &Value) -> Result<Bundle> {
        let shown = self.path.display();
        let failed = |why: String| Failure::usage(format!("could not bundle {shown}: {why}"));
        let length = fs::metadata(&self.path)
            .map_err(|error| failed(error.to_string()))?
            .len();
        if length > MAX_BYTES {
            return Err(failed(format!("it has more than {MAX_BYTES} bytes")));
        }
        let program = fs::read(&self.path).map_err(|error| failed(error.to_string()))?;
        if !self.platform.runs(&program) {
            let platform = self.platform.name();
            return Err(failed(format!(
                "it is no program for {platform}; check the target {:?}",
                self.target
            )));
        }
        let stem = short_name(name);
        let ending = if self.platform == Platform::Windows {
            ".exe"
        } else {
            ""
        };
        let entry = format!("server/{stem}{ending}");
        let description = self.manifest(name, manifest, server, &entry);
        let description = serde_json::to_string_pretty(&description).unwrap_or_default() + "\n";
        let bytes = zip(&[
            ("manifest.json", description.as_bytes(), 0o644),
            (&entry, &program, 0o755),
        ]);
        let bytes = bytes.map_err(|error| failed(error.to_string()))?;
        Ok(Bundle {
            file: format!("{stem}-{}-{}.mcpb", manifest.version, self.target),
            sha256: hex(&Sha256::digest(&bytes)),
            bytes,
        })
    }

    /// The manifest of the bundle.
    fn manifest(&self, name: &str, manifest: &Manifest, server: &Value, entry: &str) -> Value {
        let (settings, env) = settings(server);
        let description = server
            .get("description")
            .cloned()
            .unwrap_or_else(|| json!(name));
        let mut value = json!({
            "manifest_version": MANIFEST_VERSION,
            "name": short_name(name),
            "version": manifest.version,
            "description": description,
            "author": {"name": manifest.author.as_deref().unwrap_or_else(|| owner(name))},
            "server": {
                "type": "binary",
                "entry_point": entry,
                "mcp_config": {"command": format!("${{__dirname}}/{entry}"), "args": [], "env": env},
            },
            "tools_generated": true,
            "compatibility": {"platforms": [self.platform.name()]},
        });
        let Some(members) = value.as_object_mut() else {
            return value;
        };
        if let Some(title) = server.get("title") {
            members.insert("display_name".to_owned(), title.clone());
        }
        if let Some(license) = &manifest.license {
            members.insert("license".to_owned(), json!(license));
        }
        if let Some(url) = manifest
            .homepage
            .as_ref()
            .filter(|it| it.starts_with("http"))
        {
            members.insert("homepage".to_owned(), json!(url));
        }
        if let Some(url) = server.pointer("/repository/url") {
            members.insert("repository".to_owned(), json!({"type": "git", "url": url}));
        }
        if !settings.is_empty() {
            members.insert("user_config".to_owned(), Value::Object(settings));
        }
        value
    }
}

/// The settings for the variables of the packages, and the variables with the values of the settings.
fn settings(server: &Value) -> (Map<String, Value>, Map<String, Value>) {
    let (mut settings, mut env) = (Map::new(), Map::new());
    let packages = server.get("packages").and_then(Value::as_array);
    let variables = packages
        .into_iter()
        .flatten()
        .filter_map(|it| it.get("environmentVariables")?.as_array());
    for it in variables.flatten() {
        let Some(name) = it.get("name").and_then(Value::as_str) else {
            continue;
        };
        if env.contains_key(name) {
            continue;
        }
        if let Some(value) = it.get("value") {
            env.insert(name.to_owned(), value.clone());
            continue;
        }
        let is = |flag: &str| it.get(flag).is_some_and(|it| it == true);
        let mut setting = json!({
            "type": "string",
            "title": name,
            "description": it.get("description").and_then(Value::as_str).unwrap_or(name),
            "required": is("isRequired"),
            "sensitive": is("isSecret"),
        });
        if let (Some(default), Some(setting)) = (it.get("default"), setting.as_object_mut()) {
            setting.insert("default".to_owned(), default.clone());
        }
        let key = name.to_lowercase();
        env.insert(name.to_owned(), json!(format!("${{user_config.{key}}}")));
        settings.insert(key, setting);
    }
    (settings, env)
}

/// A ZIP archive whose bytes depend on nothing but its files.
fn zip(files: &[(&str, &[u8], u32)]) -> zip::result::ZipResult<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes, mode) in files {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(*mode);
        archive.start_file(*path, options)?;
        archive.write_all(bytes)?;
    }
    Ok(archive.finish()?.into_inner())
}

/// The part of a name after the namespace.
pub(super) fn short_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The owner of a namespace such as `io.github.me`.
fn owner(name: &str) -> &str {
    let namespace = Path::new(name)
        .parent()
        .and_then(Path::to_str)
        .unwrap_or(name);
    namespace.rsplit('.').next().unwrap_or(namespace)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
