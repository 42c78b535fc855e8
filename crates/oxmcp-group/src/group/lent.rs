//! A transport that comes back when its connection is over, so that a failed attempt to connect can be repeated.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oxmcp::{
    Limits, Result,
    transport::{
        BoxReadHalf, BoxTransport, BoxWriteHalf, CurrentLogin, HeaderMirror, Startup, Transport,
        UserWaits,
    },
};

/// The place of a transport while it is not lent.
#[derive(Clone)]
pub(crate) struct Home(Arc<Mutex<Option<BoxTransport>>>);

impl Home {
    pub(crate) fn new(transport: BoxTransport) -> Self {
        Self(Arc::new(Mutex::new(Some(transport))))
    }

    /// Lends the transport. `None` while its last connection is still being closed.
    pub(crate) fn lend(&self) -> Option<Lent> {
        let transport = self.lock().take()?;
        Some(Lent {
            transport: Some(transport),
            home: self.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<BoxTransport>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A transport that returns to its [`Home`] when it is dropped.
pub(crate) struct Lent {
    transport: Option<BoxTransport>,
    home: Home,
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.home.lock() = self.transport.take();
    }
}

impl Lent {
    fn get(&self) -> &BoxTransport {
        let transport = self.transport.as_ref();
        transport.expect("the transport leaves only when this is dropped")
    }
}

impl Transport for Lent {
    type Read = BoxReadHalf;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> Result<(BoxReadHalf, BoxWriteHalf)> {
        let transport = self.transport.as_mut();
        let transport = transport.expect("the transport leaves only when this is dropped");
        transport.connect(limits).await
    }

    fn name(&self) -> String {
        self.get().name()
    }

    fn identity(&self) -> Option<String> {
        self.get().identity()
    }

    fn diagnosis(&self) -> Option<String> {
        self.get().diagnosis()
    }

    fn startup(&self) -> Option<Startup> {
        self.get().startup()
    }

    fn ended_unread(&self) -> bool {
        self.get().ended_unread()
    }

    fn authorization(&self) -> Option<String> {
        self.get().authorization()
    }

    fn current_login(&self) -> Option<CurrentLogin> {
        self.get().current_login()
    }

    fn answers_each(&self) -> bool {
        self.get().answers_each()
    }

    fn ends_process(&self) -> bool {
        self.get().ends_process()
    }

    fn is_legacy(&self) -> bool {
        self.get().is_legacy()
    }

    fn mirror(&self) -> Option<HeaderMirror> {
        self.get().mirror()
    }

    fn is_strict(&self) -> bool {
        self.get().is_strict()
    }

    fn person_waits(&self) -> Option<UserWaits> {
        self.get().person_waits()
    }
}
