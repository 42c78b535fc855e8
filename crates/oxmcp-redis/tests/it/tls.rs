//! Redis and sentinels over TLS, with a certificate that another process of this program trusts.

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
};

use oxmcp::tasks::TaskStore;
use oxmcp_redis::Redis;
use xtask::packages;

use super::{
    forms::until,
    server::{free_port, key, own, task},
};

const URLS: &str = "OXMCP_REDIS_TEST_TLS_URLS";

/// Settings of a self-signed certificate.
const CERTIFICATE: &str = "[req]\ndistinguished_name = name\nx509_extensions = extensions\nprompt = no\n\
    [name]\nCN = localhost\n[extensions]\nbasicConstraints = critical,CA:FALSE\nsubjectAltName = IP:127.0.0.1\n";

/// Makes a certificate and its key. Returns whether `openssl` is installed.
fn certify(directory: &Path) -> bool {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("openssl.cnf"), CERTIFICATE).unwrap();
    let made = Command::new("openssl")
        .args([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
        ])
        .args([
            "-config",
            "openssl.cnf",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ])
        .current_dir(directory)
        .output();
    made.is_ok_and(|made| made.status.success())
}

/// Uses the servers at these addresses in a process that trusts a certificate.
fn use_all(urls: &[&str], trusted: &Path) -> Output {
    let mut process = Command::new(env::current_exe().unwrap());
    process.args(["--exact", "tls::the_process", "--nocapture"]);
    process
        .env(URLS, urls.join(" "))
        .env("SSL_CERT_FILE", trusted);
    process.output().unwrap()
}

/// Not a test by itself: the other one runs it as another process.
#[tokio::test]
async fn the_process() {
    let Ok(urls) = env::var(URLS) else {
        return;
    };
    for (number, url) in urls.split(' ').enumerate() {
        let store = match Redis::connect(url).await {
            Ok(store) => store,
            Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error)),
        };
        let store = store.prefix(number.to_string()).keys([key(1)]);
        store.create(task("a")).await.unwrap();
    }
    println!("used {}", urls.split(' ').count());
}

#[tokio::test]
async fn redis_and_sentinels_are_used_over_tls() {
    let test = "TLS";
    let directory = env::temp_dir().join(format!("oxmcp-redis-tls-{}", std::process::id()));
    if !certify(&directory) {
        packages::left_out(&format!("{test}: there is no openssl"));
        return;
    }
    let file = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (certificate, private) = (file("cert.pem"), file("key.pem"));
    let (tls, sentinel_tls) = (free_port().to_string(), free_port().to_string());
    let redis = own(
        test,
        &[
            "--tls-port",
            &tls,
            "--tls-cert-file",
            &certificate,
            "--tls-key-file",
            &private,
            "--tls-ca-cert-file",
            &certificate,
            "--tls-auth-clients",
            "no",
        ],
    );
    let Some(redis) = redis else {
        return;
    };
    let settings = format!(
        "bind 127.0.0.1\ntls-port {sentinel_tls}\ntls-cert-file {certificate}\ntls-key-file {private}\n\
         tls-ca-cert-file {certificate}\ntls-auth-clients no\ntls-replication yes\n\
         sentinel monitor main 127.0.0.1 {tls} 1\n"
    );
    fs::write(file("sentinel.conf"), settings).unwrap();
    let sentinel = own(test, &[&file("sentinel.conf"), "--sentinel"]).unwrap();
    until("the sentinel does not reach the primary", || {
        let masters: Vec<Vec<String>> = sentinel.says(&["SENTINEL", "MASTERS"]).unwrap();
        let words = &masters[0];
        let flags = words.iter().position(|it| it == "flags").unwrap();
        words[flags + 1] == "master"
    })
    .await;
    let urls = [
        &*format!("rediss://127.0.0.1:{tls}"),
        &format!("rediss-sentinel://127.0.0.1:{sentinel_tls}/main"),
    ];
    let used = use_all(&urls, &directory.join("cert.pem"));
    assert!(used.status.success(), "{used:?}");
    assert!(
        String::from_utf8_lossy(&used.stdout).contains("used 2"),
        "{used:?}"
    );
    // Two tasks, each in the set of its owner and in the set of all.
    assert_eq!(redis.says::<usize>(&["DBSIZE"]).unwrap(), 6);
    // Without trust in the certificate, neither connection is made.
    let other = directory.join("other");
    assert!(certify(&other));
    for url in urls {
        let refused = use_all(&[url], &other.join("cert.pem"));
        let said = String::from_utf8_lossy(&refused.stderr).to_lowercase();
        assert!(
            !refused.status.success() && said.contains("certificate"),
            "{url}: {said}"
        );
    }
    fs::remove_dir_all(directory).ok();
}
