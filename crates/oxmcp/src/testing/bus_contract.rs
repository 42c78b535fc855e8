//! The contract of buses: the rules that every [`Bus`] must follow.

use std::{
    future::{Future, poll_fn},
    sync::Arc,
};

use bytes::Bytes;
use futures_core::stream::BoxStream;
use tokio::time::timeout;

use super::contract_rules::{PATIENCE, must, unique};
use crate::{
    error::{Error, Result},
    store::{AnyBus, Bus, Delivery, any_bus},
};

/// Checks a bus against the contract of [`Bus`]. `make` returns two handles to one bus, as in two processes. Each rule calls it
/// again, and may get handles to the same bus, because topics are never reused. Test the report of missed messages yourself:
/// only the bus's own tests can make it lose a message.
///
/// ```
/// use std::sync::Arc;
/// use oxmcp::{store::MemoryBus, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oxmcp::Result<()> {
/// testing::bus_contract(|| async {
///     let bus = Arc::new(MemoryBus::new());
///     (Arc::clone(&bus), bus)
/// })
/// .await
/// # }
/// ```
///
/// # Errors
/// The first broken rule, with the details; or an error of the bus.
///
/// # Cancel safety
/// Cancel safe: nothing remains on the bus.
pub async fn bus_contract<B, F>(make: impl Fn() -> F) -> Result<()>
where
    B: Bus,
    F: Future<Output = (B, B)>,
{
    let new = async || {
        let (one, other) = make().await;
        (any_bus(one), any_bus(other))
    };
    messages_come(&new().await).await?;
    topics_are_separate(&new().await).await?;
    messages_come_in_order(&new().await).await?;
    large_messages(&new().await).await
}

type Handles = (Arc<dyn AnyBus>, Arc<dyn AnyBus>);

/// The next message and its topic.
async fn next(subscription: &mut BoxStream<'static, Delivery>) -> Result<(String, Bytes)> {
    let next = poll_fn(|cx| subscription.as_mut().poll_next(cx));
    match timeout(PATIENCE, next).await {
        Ok(Some(Delivery::Message { topic, message })) => Ok((topic.to_string(), message)),
        other => Err(Error::misuse(format!(
            "the bus breaks a rule: published messages are delivered\nfound: {other:?}"
        ))),
    }
}

async fn messages_come((one, other): &Handles) -> Result<()> {
    let (topic, topics) = (unique(), unique());
    let mut here = one.subscribe(&[&topics, &topic]).await?;
    let mut there = other.subscribe(&[&topic, &topics]).await?;
    for topic in [&topic, &topics] {
        for text in ["", "{}", "\0\r\n\u{1f980}"] {
            one.publish(topic, text.into()).await?;
            let rule = "all subscribers get each message with its topic, including the publisher";
            let expected = (topic.clone(), Bytes::from(text));
            must(rule, next(&mut here).await?, expected.clone())?;
            must(rule, next(&mut there).await?, expected)?;
        }
    }
    Ok(())
}

async fn topics_are_separate((one, other): &Handles) -> Result<()> {
    let (topic, longer) = (unique(), unique());
    let longer = format!("{topic}.{longer}");
    let mut subscription = other.subscribe(&[&topic]).await?;
    one.publish(&longer, "1".into()).await?;
    one.publish(&topic, "2".into()).await?;
    let rule = "messages of other topics are not delivered";
    must(
        rule,
        next(&mut subscription).await?,
        (topic.clone(), "2".into()),
    )?;
    let mut late = one.subscribe(&[&longer, &topic]).await?;
    other.publish(&topic, "3".into()).await?;
    let rule = "messages from before the subscription are not delivered";
    must(rule, next(&mut late).await?, (topic, "3".into()))
}

async fn messages_come_in_order((one, other): &Handles) -> Result<()> {
    let topic = unique();
    let mut subscription = other.subscribe(&[&topic]).await?;
    for number in 0..100 {
        one.publish(&topic, number.to_string().into()).await?;
    }
    for number in 0..100 {
        let rule = "the messages of a publisher arrive in order, each once";
        let expected = (topic.clone(), number.to_string().into());
        must(rule, next(&mut subscription).await?, expected)?;
    }
    Ok(())
}

async fn large_messages((one, other): &Handles) -> Result<()> {
    let topic = unique();
    let mut subscription = other.subscribe(&[&topic]).await?;
    let large = Bytes::from(vec![b'x'; 1 << 20]);
    one.publish(&topic, large.clone()).await?;
    let rule = "a message of 1 MiB arrives unchanged";
    must(rule, next(&mut subscription).await?.1 == large, true)
}
