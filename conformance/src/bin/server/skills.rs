//! Skills of the suite's server. The first one listed must have a subdirectory.

use oxmcp::Server;
use oxmcp_skills::{ServerExt, Skills};

use crate::offers::PNG;

/// It has a byte order mark and line breaks of Windows, and fields of each type of YAML.
const INVOICES: &str = "\u{feff}---\r\nname: invoices\r\ndescription: >-\r\n  Write an invoice\r\n  for an order\r\nlicense: MIT\r\n\
    metadata:\r\n  since: 2026-01-31\r\n  stable: yes\r\n  draft: false\r\n  version: 1.0\r\n  build: 012\r\n  reviewer: null\r\n  tags: [pdf, \"1\"]\r\n\
    ---\r\n\r\nUse [the template](templates/invoice.md) and logo.png.\r\n";

const REPORTS: &str =
    "---\nname: reports\ndescription: Write the daily report\n---\n\nKeep it short.\n";

pub(crate) fn offer(server: Server) -> Server {
    let skills = Skills::embedded([
        ("invoices/SKILL.md", INVOICES.as_bytes()),
        ("invoices/logo.png", PNG),
        ("invoices/templates/invoice.md", b"# Invoice\n"),
        ("reports/SKILL.md", REPORTS.as_bytes()),
    ]);
    // One entry on each page, so that the suite follows cursors.
    server.skills(skills.prefix("suite").page_size(1))
}
