//! Losses of a list: the entries that could not be read as the server wrote them.

use std::sync::Arc;

use oxmcp_json::Text;
use oxmcp_protocol::lenient::Tolerated;

use crate::sync::Mutex;

/// The members that identify an entry of a list to people.
const NAMES: [&str; 4] = ["name", "uri", "uriTemplate", "taskId"];
/// The maximum number of characters of a name, a member or a reason.
const MAX_CHARS: usize = 200;

/// An entry of a list that was left out, or of which a member was left out, because it does not follow the specification.
///
/// See [`Listing::left_out`](crate::Listing::left_out).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListingOmission {
    /// The page with the entry. The first page that was read is 0.
    pub page: usize,
    /// The index of the entry in its page, as the server wrote it.
    pub index: usize,
    /// The name or the URI of the entry, if it has one. At most 200 characters, as the other texts.
    pub name: Option<String>,
    /// The member that was left out, as a JSON pointer into the entry, such as `/annotations`. `None` if the entry was left out.
    pub member: Option<String>,
    /// The reason why it could not be read.
    pub reason: String,
}

/// The losses of the page that a call reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageLosses(Arc<Mutex<Vec<ListingOmission>>>);

impl PageLosses {
    /// Notes the losses among the deviations of a result, in place of those of an earlier reading.
    pub(crate) fn note(&self, result: &str, tolerated: &[Tolerated]) {
        let losses = tolerated.iter().filter(|it| it.leniency.leaves_out());
        let losses = losses.filter_map(|it| left_out(Text::checked(result), it));
        *self.0.lock() = losses.collect();
    }

    /// The losses, of a page with this number.
    pub(crate) fn take(&self, page: usize) -> Vec<ListingOmission> {
        let mut losses = std::mem::take(&mut *self.0.lock());
        for it in &mut losses {
            it.page = page;
        }
        losses
    }
}

/// The entry at a place such as `/tools/3` or `/tools/3/annotations`. `None` for any other place.
fn left_out(result: Text<'_>, tolerated: &Tolerated) -> Option<ListingOmission> {
    let (list, within) = tolerated.place.strip_prefix('/')?.split_once('/')?;
    let (index, member) = match within.split_once('/') {
        Some((index, member)) => (index, Some(format!("/{}", shortened(member)))),
        None => (within, None),
    };
    let index = index.parse().ok()?;
    let (_, entries) = result.members().find(|(key, _)| key.is_str(list))?;
    let name = entries.items().nth(index).and_then(name);
    Some(ListingOmission {
        page: 0,
        index,
        name: name.as_deref().map(shortened),
        member,
        reason: shortened(&tolerated.detail),
    })
}

fn name(entry: Text<'_>) -> Option<String> {
    let named = |name: &&str| {
        let mut members = entry.members();
        let (_, value) = members.find(|(key, _)| key.is_str(name))?;
        value.as_str().map(|text| text.into_owned())
    };
    NAMES.iter().find_map(named)
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}
