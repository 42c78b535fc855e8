//! Logins that are bound to a key (DPoP), in stores.

use super::*;

#[tokio::test(start_paused = true)]
async fn bound_login_survives_a_restart() {
    let (folder, web) = (Folder::new(), Web::new());
    connect(&web, agreeing(&web).dpop().store(folder.store()))
        .await
        .unwrap();
    for _ in 0..2 {
        web.asked();
        let again = Login::non_interactive().store(folder.store());
        let session = connect(&web, again).await.unwrap();
        assert!(web.asked().is_empty());
        web.fake().expire();
        call(&session, "add").await.unwrap();
        assert_eq!(web.asked(), ["refresh_token"]);
    }
}

#[tokio::test(start_paused = true)]
async fn bound_login_refreshed_elsewhere_uses_its_key() {
    let (folder, web) = (Folder::new(), Web::new());
    let login = || agreeing(&web).dpop().store(folder.store());
    let one = connect(&web, login()).await.unwrap();
    let other = connect(&web, login()).await.unwrap();
    web.asked();
    web.fake().expire();
    call(&other, "add").await.unwrap();
    call(&one, "add").await.unwrap();
    assert_eq!(web.asked(), ["refresh_token"]);
    // After a login with another key, an open session continues with the new key.
    web.fake().expire();
    web.fake().revoke();
    fs::remove_file(folder.file()).unwrap();
    connect(&web, login()).await.unwrap();
    web.asked();
    call(&one, "add").await.unwrap();
    assert!(web.asked().is_empty());
}
