//! Redis Sentinel: finding the current primary.

use std::sync::atomic::{AtomicBool, Ordering};

use oxmcp::Result;
use redis::{
    Client, ConnectionAddr, ConnectionInfo, RedisResult, TlsMode,
    sentinel::{Sentinel, SentinelNodeConnectionInfo},
};
use tokio::sync::Mutex;

use super::address::{Address, tcp};
use crate::failure;

/// The sentinels, and the primary that they monitor.
pub(crate) struct Sentinels {
    sentinels: Mutex<Sentinel>,
    primary: String,
    /// The settings of connections to the primary.
    settings: SentinelNodeConnectionInfo,
    is_asking: AtomicBool,
}

impl Sentinels {
    /// User, password and database of the address are those of the primary; the sentinels may have others.
    pub(crate) fn new(address: &Address, primary: &str) -> Result<Self> {
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

    /// Whether the caller must query the sentinels, since no other caller is doing so. Ends with
    /// [`end_asking`](Self::end_asking).
    pub(crate) fn begin_asking(&self) -> bool {
        !self.is_asking.swap(true, Ordering::AcqRel)
    }

    /// Notes that the caller that queries the sentinels is done.
    pub(crate) fn end_asking(&self) {
        self.is_asking.store(false, Ordering::Release);
    }

    /// A client of the current primary, which confirms that it is the primary.
    pub(crate) async fn primary(&self) -> RedisResult<Client> {
        let mut sentinels = self.sentinels.lock().await;
        let settings = Some(&self.settings);
        sentinels.async_master_for(&self.primary, settings).await
    }
}
