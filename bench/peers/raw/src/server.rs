//! The practical limit over a byte stream: lines in, answers out.

use std::io;

use bench_support::Lines;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::tools::{Answer, Tools};

/// More than this is not held back for the sake of a fuller write.
const FULL: usize = 64 * 1024;

/// Serves one connection until its end.
///
/// # Errors
/// When reading or writing fails.
pub async fn serve(
    mut input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let tools = Tools::new();
    let mut lines = Lines::default();
    let mut out = Vec::with_capacity(FULL);
    while input.read_buf(lines.room()).await? > 0 {
        while let Some(line) = lines.next_line() {
            if let Answer::Stream(mut stream) = tools.answer(line, &mut out) {
                while stream.next(&mut out) {
                    flush(&mut output, &mut out, FULL).await?;
                }
            }
            flush(&mut output, &mut out, FULL).await?;
        }
        flush(&mut output, &mut out, 0).await?;
    }
    Ok(())
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
