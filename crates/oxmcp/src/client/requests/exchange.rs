//! A call that is ready to be made, and how it is made.

use std::{borrow::Cow, mem};

use crate::{
    client::{
        cache::options::CacheMode,
        requests::multi_round_trip::{Again, Asks, unknown_type},
        session::ClientSession,
    },
    error::{Error, Result},
    json::Text,
    protocol::{
        Method, Payload, ResultType, has_result_type,
        method::{self, CallTool},
        peek_result_type,
    },
    session::{CallOptions, CallResult, Outgoing},
};

/// What a call carries. It is small: most calls carry a text, and are to make no room for what the others carry.
pub(crate) enum Params<P> {
    /// What the client may have an answer to already says how that is used; it stands here because it takes no room
    /// here.
    Typed(Box<P>, CacheMode),
    /// A JSON object that fits every revision, without a `_meta`.
    Written(Vec<u8>),
}

impl<P> Params<P> {
    /// Those of a call that is not made.
    pub(crate) const NONE: Self = Self::Written(Vec::new());
}

impl<P: Payload> Params<P> {
    /// The params as a JSON object, in the revision that they were made to fit.
    pub(crate) fn to_json(&self) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Typed(params, _) => {
                let json = serde_json::to_vec(params).map_err(|error| {
                    Error::misuse(format!("the params are no JSON: {error}")).with_source(error)
                });
                json.map(Cow::Owned)
            }
            Self::Written(params) => Ok(Cow::Borrowed(params)),
        }
    }
}

/// A call that can be made.
pub(crate) struct Ready<P> {
    pub(crate) session: ClientSession,
    pub(crate) params: Params<P>,
    pub(crate) options: CallOptions,
}

/// What a call gives, made once.
pub(crate) enum Given {
    Complete(CallResult),
    /// It is of a type that an extension has added.
    Extended(Box<str>),
    /// The server asks for something first.
    Asks(Asks),
}

/// A call that was made once, and its result.
pub(crate) enum Begun<P> {
    /// It depends on the params alone.
    Complete(Box<str>),
    /// It is of a type that an extension has added.
    Extended(Box<str>),
    /// The server asks for something first: the call can go on.
    Asks(Box<Ready<P>>, Asks),
}

impl<P: Payload> Ready<P> {
    /// Takes it out of what is not used any more.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            session: self.session.clone(),
            params: mem::replace(&mut self.params, Params::NONE),
            options: mem::take(&mut self.options),
        }
    }

    /// Makes the call once.
    pub(crate) async fn begin<M: Method<Params = P>>(&mut self) -> Result<Given> {
        let result = self.exchange::<M>().await?;
        self.judge::<M>(result)
    }

    /// What is left to do for a call that was made once: to make it again where that may help, and to answer what the
    /// server asks before it gives the result. `listed` says how often tools had been listed when it was made.
    pub(crate) async fn complete<M: Method<Params = P>>(
        &mut self,
        first: Result<CallResult>,
        listed: u64,
    ) -> Result<CallResult> {
        let result = self.settle::<M>(first, listed).await?;
        match self.judge::<M>(result)? {
            Given::Complete(result) => Ok(result),
            Given::Extended(result) => Ok(result.into()),
            Given::Asks(asks) => Ok(self.go_on::<M>(asks).await?.into()),
        }
    }

    /// What a result is.
    fn judge<M: Method<Params = P>>(&self, result: CallResult) -> Result<Given> {
        if !self.session.revision().is_modern() {
            return Ok(Given::Complete(result));
        }
        Ok(match result.result_type() {
            ResultType::Complete => Given::Complete(result),
            ResultType::InputRequired => {
                Given::Asks(Asks::new(self.session.connection(), result.json))
            }
            ResultType::Other => {
                check_type::<M>(&self.session, &result.json)?;
                Given::Extended(result.json)
            }
        })
    }

    /// Answers what the server asks, until it asks no more.
    pub(crate) async fn go_on<M: Method<Params = P>>(&mut self, asks: Asks) -> Result<Box<str>> {
        let session = &self.session;
        if !method::is_in(method::MULTI_ROUND_TRIP, M::NAME, session.revision()) {
            return Err(Error::decode(format!(
                "{}: the server asks for input, which it must not do here",
                M::NAME
            )));
        }
        let again = Again::after(M::NAME, mem::take(&mut self.options));
        let params = self.params.to_json()?;
        let complete = again.until_complete(session, &params, asks).await?;
        check_type::<M>(session, &complete)?;
        Ok(complete)
    }

    /// Makes the call; a tool's once more where the server found that its headers do not fit. The params and the options are
    /// still there afterwards.
    pub(crate) async fn exchange<M: Method<Params = P>>(&mut self) -> Result<CallResult> {
        let listed = self.listed();
        let first = self.exchange_once::<M>().await;
        self.settle::<M>(first, listed).await
    }

    /// How many times tools were listed because a call was refused.
    pub(crate) fn listed(&self) -> u64 {
        self.session.peer().mirrored().listed()
    }

    async fn settle<M: Method<Params = P>>(
        &mut self,
        first: Result<CallResult>,
        listed: u64,
    ) -> Result<CallResult> {
        match first {
            Err(error)
                if M::NAME == CallTool::NAME
                    && self.session.peer().mirrored().is_mismatch(&error) =>
            {
                Box::pin(self.exchange_anew::<M>(error, listed)).await
            }
            answer => answer,
        }
    }

    /// Makes the call once.
    pub(crate) async fn exchange_once<M: Method<Params = P>>(&mut self) -> Result<CallResult> {
        let connection = self.session.connection();
        let options = &mut self.options;
        options.start = Some(connection.now());
        let answer = match &self.params {
            Params::Typed(params, _) => {
                let call = connection.call(M::NAME, &**params, options.lend());
                Box::pin(call).await.map(CallResult::from)
            }
            Params::Written(params) => {
                Box::pin(connection.call_written(M::NAME, params, options)).await
            }
        };
        self.note_visits(&answer);
        answer
    }

    /// The call as it is sent, where its params have been written.
    pub(crate) fn outgoing<M: Method<Params = P>>(&mut self) -> Option<Outgoing<'_>> {
        match &self.params {
            Params::Written(params) => Some(Outgoing {
                connection: self.session.connection(),
                method: M::NAME,
                params,
                options: &mut self.options,
            }),
            Params::Typed(..) => None,
        }
    }

    /// A server that cannot do what it was asked before its user has been somewhere says where.
    pub(crate) fn note_visits(&self, answer: &Result<CallResult>) {
        if let Err(error) = answer {
            let peer = self.session.peer();
            // A client that cannot send its user anywhere waits for nothing.
            if peer.client().features().on_elicit_url.is_some() {
                peer.visits().begin_all(error);
            }
        }
    }
}

/// Refuses a result of a type that is nobody's. One that an extension has added is taken where the client has the extension,
/// and the method reads it.
pub(crate) fn check_type<M: Method>(session: &ClientSession, result: &str) -> Result<()> {
    let result = Text::checked(result);
    if peek_result_type(result) != ResultType::Other {
        return Ok(());
    }
    let features = session.client().features().clone();
    let is_known = |name: &&&str| features.extensions.has_result_type(name);
    let mut known = M::RESULT_TYPES.iter().filter(is_known);
    if known.any(|name| has_result_type(result, name)) {
        return Ok(());
    }
    Err(unknown_type(M::NAME))
}
