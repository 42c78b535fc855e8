//! Type-erased transports, for programs that choose their transport at run time.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
};

use crate::{
    error::Result,
    limits::Limits,
    transport::{
        mirror::HeaderMirror,
        traits::{
            CurrentLogin, Frame, Messages, ReadHalf, Startup, Transport, UserWaits, WriteHalf,
        },
    },
};

type Borrowed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'a>>;

/// Erases the type of a transport, for a program that chooses its transport at run time. Each wait for a message and each write
/// then costs an allocation.
///
/// ```
/// use oxmcp::transport::{self, BoxTransport};
///
/// fn choose(server: Option<&str>) -> BoxTransport {
///     match server {
///         Some(program) => transport::boxed(transport::Command::new(program)),
///         None => transport::boxed(transport::stdio()),
///     }
/// }
/// # let _ = choose(None);
/// ```
pub fn boxed(transport: impl Transport) -> BoxTransport {
    BoxTransport(Box::new(transport))
}

/// Any transport; created by [`boxed`].
pub struct BoxTransport(Box<dyn ErasedTransport>);

/// The read half of the connection of a [`BoxTransport`].
pub struct BoxReadHalf(Box<dyn ErasedReadHalf>);

/// The write half of the connection of a [`BoxTransport`].
pub struct BoxWriteHalf(Box<dyn ErasedWriteHalf>);

impl Transport for BoxTransport {
    type Read = BoxReadHalf;
    type Write = BoxWriteHalf;

    async fn connect(&mut self, limits: &Limits) -> Result<(BoxReadHalf, BoxWriteHalf)> {
        self.0.connect(limits).await
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn identity(&self) -> Option<String> {
        self.0.identity()
    }

    fn diagnosis(&self) -> Option<String> {
        self.0.diagnosis()
    }

    fn startup(&self) -> Option<Startup> {
        self.0.startup()
    }

    fn person_waits(&self) -> Option<UserWaits> {
        self.0.person_waits()
    }

    fn current_login(&self) -> Option<CurrentLogin> {
        self.0.current_login()
    }

    fn ended_unread(&self) -> bool {
        self.0.ended_unread()
    }

    fn authorization(&self) -> Option<String> {
        self.0.authorization()
    }

    fn ends_process(&self) -> bool {
        self.0.ends_process()
    }

    fn is_strict(&self) -> bool {
        self.0.is_strict()
    }

    fn is_legacy(&self) -> bool {
        self.0.is_legacy()
    }

    fn answers_each(&self) -> bool {
        self.0.answers_each()
    }

    fn mirror(&self) -> Option<HeaderMirror> {
        self.0.mirror()
    }
}

impl ReadHalf for BoxReadHalf {
    async fn read(&mut self) -> Result<Option<Frame<'_>>> {
        self.0.read().await
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        self.0.try_read()
    }

    fn is_drained(&self) -> bool {
        self.0.is_drained()
    }
}

impl WriteHalf for BoxWriteHalf {
    async fn write(&mut self, messages: Messages<'_>) -> Result<()> {
        self.0.write(messages).await
    }

    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        self.0.bytes_written()
    }

    async fn close(&mut self) -> Result<()> {
        self.0.close().await
    }

    fn can_reconnect(&self) -> bool {
        self.0.can_reconnect()
    }

    async fn reconnect(&mut self) -> Result<()> {
        self.0.reconnect().await
    }
}

/// The object-safe form of [`Transport`].
trait ErasedTransport: Send {
    fn connect<'a>(&'a mut self, limits: &'a Limits) -> Borrowed<'a, (BoxReadHalf, BoxWriteHalf)>;
    fn name(&self) -> String;
    fn identity(&self) -> Option<String>;
    fn diagnosis(&self) -> Option<String>;
    fn startup(&self) -> Option<Startup>;
    fn person_waits(&self) -> Option<UserWaits>;
    fn current_login(&self) -> Option<CurrentLogin>;
    fn ended_unread(&self) -> bool;
    fn authorization(&self) -> Option<String>;
    fn ends_process(&self) -> bool;
    fn is_strict(&self) -> bool;
    fn is_legacy(&self) -> bool;
    fn answers_each(&self) -> bool;
    fn mirror(&self) -> Option<HeaderMirror>;
}

/// The object-safe form of [`ReadHalf`].
trait ErasedReadHalf: Send {
    fn read(&mut self) -> Borrowed<'_, Option<Frame<'_>>>;
    fn try_read(&mut self) -> Option<Frame<'_>>;
    fn is_drained(&self) -> bool;
}

/// The object-safe form of [`WriteHalf`].
trait ErasedWriteHalf: Send {
    fn write<'a>(&'a mut self, messages: Messages<'a>) -> Borrowed<'a, ()>;
    fn bytes_written(&self) -> Option<Arc<AtomicU64>>;
    fn close(&mut self) -> Borrowed<'_, ()>;
    fn can_reconnect(&self) -> bool;
    fn reconnect(&mut self) -> Borrowed<'_, ()>;
}

impl<T: Transport> ErasedTransport for T {
    fn connect<'a>(&'a mut self, limits: &'a Limits) -> Borrowed<'a, (BoxReadHalf, BoxWriteHalf)> {
        Box::pin(async move {
            let (read, write) = Transport::connect(self, limits).await?;
            Ok((BoxReadHalf(Box::new(read)), BoxWriteHalf(Box::new(write))))
        })
    }

    fn name(&self) -> String {
        Transport::name(self)
    }

    fn identity(&self) -> Option<String> {
        Transport::identity(self)
    }

    fn diagnosis(&self) -> Option<String> {
        Transport::diagnosis(self)
    }

    fn startup(&self) -> Option<Startup> {
        Transport::startup(self)
    }

    fn person_waits(&self) -> Option<UserWaits> {
        Transport::person_waits(self)
    }

    fn current_login(&self) -> Option<CurrentLogin> {
        Transport::current_login(self)
    }

    fn ended_unread(&self) -> bool {
        Transport::ended_unread(self)
    }

    fn authorization(&self) -> Option<String> {
        Transport::authorization(self)
    }

    fn ends_process(&self) -> bool {
        Transport::ends_process(self)
    }

    fn is_strict(&self) -> bool {
        Transport::is_strict(self)
    }

    fn is_legacy(&self) -> bool {
        Transport::is_legacy(self)
    }

    fn answers_each(&self) -> bool {
        Transport::answers_each(self)
    }

    fn mirror(&self) -> Option<HeaderMirror> {
        Transport::mirror(self)
    }
}

impl<R: ReadHalf> ErasedReadHalf for R {
    fn read(&mut self) -> Borrowed<'_, Option<Frame<'_>>> {
        Box::pin(ReadHalf::read(self))
    }

    fn try_read(&mut self) -> Option<Frame<'_>> {
        ReadHalf::try_read(self)
    }

    fn is_drained(&self) -> bool {
        ReadHalf::is_drained(self)
    }
}

impl<W: WriteHalf> ErasedWriteHalf for W {
    fn write<'a>(&'a mut self, messages: Messages<'a>) -> Borrowed<'a, ()> {
        Box::pin(WriteHalf::write(self, messages))
    }

    fn bytes_written(&self) -> Option<Arc<AtomicU64>> {
        WriteHalf::bytes_written(self)
    }

    fn close(&mut self) -> Borrowed<'_, ()> {
        Box::pin(WriteHalf::close(self))
    }

    fn can_reconnect(&self) -> bool {
        WriteHalf::can_reconnect(self)
    }

    fn reconnect(&mut self) -> Borrowed<'_, ()> {
        Box::pin(WriteHalf::reconnect(self))
    }
}

impl fmt::Debug for BoxTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoxTransport").field(&self.0.name()).finish()
    }
}

impl fmt::Debug for BoxReadHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxReadHalf")
    }
}

impl fmt::Debug for BoxWriteHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxWriteHalf")
    }
}
