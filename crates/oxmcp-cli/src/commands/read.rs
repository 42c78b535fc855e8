//! `oxmcp read`: reads a resource.

use crate::{
    args::Read,
    failure::{Failure, Result},
    output, session,
    target::Server,
    terminal::Terminal,
};

pub(crate) async fn run(args: Read, as_json: bool, terminal: &Terminal) -> Result<()> {
    let server = Server::find(args.target, terminal)?;
    let [uri] = server.words.as_slice() else {
        return Err(Failure::usage(
            "expected one URI; `oxmcp inspect` shows the resources of the server",
        ));
    };
    let session = session::connect(&server, &args.connection, terminal).await?;
    let read = session.read_resource(uri).await;
    session::close(&session).await;
    let read = read?;
    if as_json {
        return output::json(&read);
    }
    read.contents.iter().try_for_each(output::contents)
}
