//! All files of a directory, read at once.

use crate::server::files::*;

fn paths(temp: &Temp) -> Vec<String> {
    let files = temp.files().read_all(100).unwrap();
    files.into_iter().map(|file| file.path).collect()
}

#[test]
fn whole_directory_is_read_in_order() {
    let temp = Temp::new();
    temp.write("b.txt", b"\xff\0");
    temp.write("a/c.txt", "text");
    temp.write(".secret/d.txt", "hidden");
    let files = temp.files().read_all(2).unwrap();
    let read: Vec<_> = files.iter().map(|it| (&*it.path, &it.bytes[..])).collect();
    assert_eq!(read, [("a/c.txt", &b"text"[..]), ("b.txt", b"\xff\0")]);
    assert_eq!(temp.files().hidden().read_all(3).unwrap().len(), 3);
}

#[test]
fn whole_directory_is_bounded() {
    let temp = Temp::new();
    temp.write("a.txt", "12345");
    temp.write("b.txt", "");
    let problem = |files: FileResources, most| files.read_all(most).unwrap_err().to_string();
    let files = temp.files();
    assert!(problem(files.clone(), 1).ends_with("more than 1 files"));
    let error = problem(files.max_bytes(4), 2);
    assert!(
        error.ends_with(r#""a.txt": larger than 4 bytes"#),
        "{error}"
    );
    let deep = "d/".repeat(64);
    temp.write(&format!("{deep}e.txt"), "");
    let error = problem(temp.files(), 100);
    assert!(error.ends_with("more than 64 levels deep"), "{error}");
    assert!(file_resources(temp.0.join("absent")).read_all(1).is_err());
}

#[cfg(unix)]
#[test]
fn whole_directory_contains_no_links() {
    use std::os::unix::fs::symlink;

    let temp = Temp::new();
    fs::create_dir(temp.0.join("outside")).unwrap();
    fs::write(temp.0.join("outside/secret.txt"), "secret").unwrap();
    temp.write("real.txt", "hello");
    symlink(
        temp.0.join("outside/secret.txt"),
        temp.served().join("file"),
    )
    .unwrap();
    symlink(temp.0.join("outside"), temp.served().join("directory")).unwrap();
    symlink("real.txt", temp.served().join("inside")).unwrap();
    assert_eq!(paths(&temp), ["real.txt"]);
}
