//! Sentinels: who is the primary now.

use std::sync::atomic::{AtomicBool, Ordering};

use oxmcp::Result;
use redis::{
    Client, ConnectionAddr, ConnectionInfo, RedisResult, TlsMode,
    sentinel::{Sentinel, SentinelNodeConnectionInfo},
};
use tokio::sync::Mutex;

use super::address::{Address, tcp};
use crate::failure;

/// The sentinels, and what they watch over.
pub(super) struct Sentinels {
    sentinels: Mutex<Sentinel>,
    primary: String,
    /// How the primary is connected to.
    settings: SentinelNodeConnectionInfo,
    is_asking: AtomicBool,
}

impl Sentinels {
    /// User, password and database of the address are those of the primary; the sentinels may have others.
    pub(super) fn new(address: &Address, primary: &str) -> Result<Self> {
        let mut settings = SentinelNodeConnectionInfo::default().set_tcp_settings(tcp());
        if let Some(first) = address.servers.first() {
            settings = settings.set_redis_connection_info(first.redis_settings().clone());
            if let ConnectionAddr::TcpTls { insecure, .. } = first.addr() {
                settings = settings.set_tls_mode(match insecure {
                    true => TlsMode::Insecure,
                    false => TlsMode::Secure,
                });
            }
        }
        let asked = |it: &ConnectionInfo| it.clone().set_redis_settings(address.sentinel.clone());
        let sentinels = address.servers.iter().map(asked).collect();
        let sentinels = Sentinel::build(sentinels).map_err(|error| failure::of_url(Some(error)))?;
        Ok(Self {
            sentinels: Mutex::new(sentinels),
            primary: primary.to_owned(),
            settings,
            is_asking: AtomicBool::new(false),
        })
    }

    /// Whether the caller is to ask, since nobody else does.
    pub(super) fn begin_asking(&self) -> bool {
        !self.is_asking.swap(true, Ordering::AcqRel)
    }

    /// Whoever has begun to ask is done.
    pub(super) fn end_asking(&self) {
        self.is_asking.store(false, Ordering::Release);
    }

    /// A client of who is the primary now, and says so itself.
    pub(super) async fn primary(&self) -> RedisResult<Client> {
        let mut sentinels = self.sentinels.lock().await;
        let settings = Some(&self.settings);
        sentinels.async_master_for(&self.primary, settings).await
    }
}
