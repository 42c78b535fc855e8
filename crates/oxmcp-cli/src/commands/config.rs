//! `oxmcp config list`: the configuration files of hosts, and their servers.

use serde_json::json;

use crate::{failure::Result, hosts, output, terminal::Terminal};

pub(crate) fn list(as_json: bool, terminal: &Terminal) -> Result<()> {
    let mut files = Vec::new();
    for source in hosts::sources() {
        let path = source.path.display().to_string();
        match hosts::reader(terminal, None).read(&source.path) {
            Ok(config) => {
                let servers = config
                    .servers()
                    .iter()
                    .map(|it| json!({"name": it.name(), "reach": hosts::reach(it)}));
                let servers: Vec<_> = servers.collect();
                files.push(json!({"host": source.host, "path": path, "servers": servers}));
                if !as_json {
                    output::text(&format!("{} ({path})", source.host))?;
                    for it in config.servers() {
                        output::text(&format!("  {}: {}", it.name(), hosts::reach(it)))?;
                    }
                }
            }
            Err(error) => {
                files.push(json!({"host": source.host, "path": path, "error": error.to_string()}));
                if !as_json {
                    output::text(&format!("{} ({path}): {error}", source.host))?;
                }
            }
        }
    }
    if as_json {
        return output::json(&files);
    }
    if files.is_empty() {
        terminal.note("no configuration files of hosts found");
    }
    Ok(())
}
