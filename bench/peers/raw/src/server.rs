//! The practical limit over a byte stream: reads lines, and writes answers.

use std::io;

use bench_support::{Adder, Lines};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    select,
    task::JoinSet,
};

use crate::tools::{Answer, Tools};

/// The size at which buffered answers are written, and no longer held back for a fuller write.
const FULL: usize = 64 * 1024;

/// Serves one connection until its end. `dummies` is the number of tools that only fill the list.
///
/// # Errors
/// If reading or writing fails.
pub async fn serve(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    dummies: usize,
) -> io::Result<()> {
    let tools = Tools::new(dummies);
    let mut lines = Lines::default();
    let mut out = Vec::with_capacity(FULL);
    let (adder, mut waiting) = (Adder::start(), JoinSet::<Vec<u8>>::new());
    loop {
        let read = if waiting.is_empty() {
            input.read_buf(lines.room()).await?
        } else {
            select! {
                read = input.read_buf(lines.room()) => read?,
                Some(answer) = waiting.join_next() => {
                    let mut answer = Some(answer);
                    while let Some(Ok(text)) = answer {
                        out.extend_from_slice(&text);
                        answer = waiting.try_join_next();
                    }
                    flush(&mut output, &mut out, 0).await?;
                    continue;
                }
            }
        };
        if read == 0 {
            return Ok(());
        }
        while let Some(line) = lines.next_line() {
            match tools.answer(line, &mut out) {
                Answer::Stream(mut stream) => {
                    while stream.next(&mut out) {
                        flush(&mut output, &mut out, FULL).await?;
                    }
                }
                Answer::Wait(wait) => {
                    let adder = adder.clone();
                    waiting.spawn(async move {
                        let mut out = Vec::new();
                        wait.answer(&adder, &mut out).await;
                        out
                    });
                }
                _ => {}
            }
            flush(&mut output, &mut out, FULL).await?;
        }
        flush(&mut output, &mut out, 0).await?;
    }
}

async fn flush(
    output: &mut (impl AsyncWrite + Unpin),
    out: &mut Vec<u8>,
    above: usize,
) -> io::Result<()> {
    if out.len() > above {
        output.write_all(out).await?;
        output.flush().await?;
        out.clear();
    }
    Ok(())
}
