//! Errors of addresses without a usable Redis.

use std::net::Ipv4Addr;

use oxmcp_redis::Redis;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::server::{free_port, own, refused};

#[tokio::test]
async fn unreachable_address_is_reported() {
    let url = format!("redis://:hunter2@127.0.0.1:{}", free_port());
    let error = refused(Redis::connect(&url).await);
    assert!(
        error.contains("could not connect to Redis at 127.0.0.1:"),
        "{error}"
    );
    assert!(!error.contains("hunter2"), "{error}");
    let error = refused(Redis::connect("http://:hunter2@host").await);
    assert!(error.contains("redis://[user:password@]host"), "{error}");
    assert!(!error.contains("hunter2"), "{error}");
}

#[tokio::test]
async fn wrong_password_is_reported() {
    let test = "passwords";
    let Some(server) = own(test, &["--requirepass", "right"]) else {
        return;
    };
    let with = |password: &str| {
        server
            .url()
            .replace("redis://", &format!("redis://{password}"))
    };
    for password in ["", ":wrong@", "ann:right@"] {
        let error = refused(Redis::connect(with(password)).await);
        assert!(error.contains("redis://user:password@host"), "{error}");
        assert!(!error.contains("wrong"), "{error}");
    }
    Redis::connect(with(":right@")).await.unwrap();
}

#[tokio::test]
async fn old_redis_is_refused() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut buffer = [0; 4096];
                while let Ok(1..) = stream.read(&mut buffer).await {
                    let said = String::from_utf8_lossy(&buffer);
                    let info = "redis_version:6.2.14\r\nredis_mode:standalone\r\n";
                    let answer = match said {
                        _ if said.contains("HELLO") => {
                            "%1\r\n$5\r\nproto\r\n:3\r\n+OK\r\n+OK\r\n".to_owned()
                        }
                        _ => format!("${}\r\n{info}\r\n", info.len()),
                    };
                    buffer.fill(0);
                    stream.write_all(answer.as_bytes()).await.unwrap();
                }
            });
        }
    });
    let error = refused(Redis::connect(format!("redis://127.0.0.1:{port}")).await);
    assert!(error.contains("version 6.2.14; use Redis 7.0"), "{error}");
    server.abort();
}
