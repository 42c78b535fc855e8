use std::{ffi::OsString, path::Path};

/// The types of files, by the ends of their names: those that models and people are commonly given.
const TYPES: &[(&str, &str)] = &[
    ("bmp", "image/bmp"),
    ("c", "text/x-c"),
    ("cpp", "text/x-c++"),
    ("cs", "text/x-csharp"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("gif", "image/gif"),
    ("go", "text/x-go"),
    ("gz", "application/gzip"),
    ("h", "text/x-c"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("java", "text/x-java"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("kt", "text/x-kotlin"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("mjs", "text/javascript"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("pdf", "application/pdf"),
    ("php", "text/x-php"),
    ("png", "image/png"),
    ("py", "text/x-python"),
    ("rb", "text/x-ruby"),
    ("rs", "text/x-rust"),
    ("sh", "text/x-shellscript"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("swift", "text/x-swift"),
    ("tar", "application/x-tar"),
    ("toml", "application/toml"),
    ("ts", "text/x-typescript"),
    ("tsv", "text/tab-separated-values"),
    ("tsx", "text/x-typescript"),
    ("txt", "text/plain"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
];

/// The type of a file, where its name tells.
pub(super) fn mime_type(names: &[OsString]) -> Option<&'static str> {
    let ending = Path::new(names.last()?).extension()?.to_str()?;
    let ending = ending.to_ascii_lowercase();
    let at = TYPES.binary_search_by(|(known, _)| (*known).cmp(&ending));
    TYPES.get(at.ok()?).map(|(_, mime_type)| *mime_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_types() {
        assert!(TYPES.is_sorted());
        let of = |name: &str| mime_type(&[name.into()]);
        assert_eq!(of("a.TXT"), Some("text/plain"));
        assert_eq!(of("a.tar.gz"), Some("application/gzip"));
        assert_eq!(of("txt"), None);
        assert_eq!(of("a.unknown"), None);
    }
}
