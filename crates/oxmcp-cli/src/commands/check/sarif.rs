//! Reports in SARIF 2.1.0, the format of code scanning services.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::report::{Found, Report};

/// The reports as one run.
pub(super) fn sarif(reports: &[Report]) -> Value {
    let mut rules: BTreeMap<&str, &Found> = BTreeMap::new();
    for found in reports.iter().flat_map(|it| &it.findings) {
        rules.entry(&found.id).or_insert(found);
    }
    let indexes: BTreeMap<&str, usize> = rules
        .keys()
        .enumerate()
        .map(|(index, id)| (*id, index))
        .collect();
    let results = reports.iter().flat_map(|report| {
        let indexes = &indexes;
        report.findings.iter().map(move |found| {
            let index = indexes.get(found.id.as_str()).copied().unwrap_or_default();
            result(report, found, index)
        })
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "oxmcp check",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules.values().map(|it| rule(it)).collect::<Vec<_>>(),
            }},
            "results": results.collect::<Vec<_>>(),
            "columnKind": "unicodeCodePoints",
        }],
    })
}

/// The rule of a finding. The text of its help is the remedy, which services show beside each result.
fn rule(found: &Found) -> Value {
    let help = match found.remedy.as_str() {
        "" => &found.message,
        remedy => remedy,
    };
    json!({
        "id": found.id,
        "shortDescription": {"text": found.id.replace('-', " ")},
        "help": {"text": help},
        "defaultConfiguration": {"level": found.severity},
    })
}

fn result(report: &Report, found: &Found, index: usize) -> Value {
    let text = match found.remedy.as_str() {
        "" => format!("{}: {}", found.place, found.message),
        remedy => format!("{}: {}; {remedy}", found.place, found.message),
    };
    let (file, line) = &report.source;
    let name = format!("{}: {}", report.target, found.place);
    // The times and process IDs in a message differ from run to run.
    let identity = Sha256::digest(format!("{name}\n{}", found.id));
    json!({
        "ruleId": found.id,
        "ruleIndex": index,
        "level": found.severity,
        "message": {"text": text},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(file)},
                "region": {"startLine": line},
            },
            "logicalLocations": [{"fullyQualifiedName": name}],
        }],
        "partialFingerprints": {"oxmcp/v1": hex(&identity)},
    })
}

/// A path as a URI reference. A URL stays as it is.
fn uri(path: &str) -> String {
    let is_kept =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=?%#".contains(&byte);
    let is_url = path.contains("://");
    let path = if is_url {
        path.to_owned()
    } else {
        path.replace('\\', "/")
    };
    let mut uri = String::new();
    for byte in path.bytes() {
        if is_kept(byte) && (is_url || !b"?%#:".contains(&byte)) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uri_references() {
        assert_eq!(uri("a b/ü#1.json"), "a%20b/%C3%BC%231.json");
        assert_eq!(uri("https://a/b?c=1"), "https://a/b?c=1");
    }
}
